"""The flow labels of a port's tools, and what its agents have read.

That sticks to an agent for an hour, and to a session whose run has read it for as long as the session is kept.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gloveport.rules.labels import LabelledRead, SourceLabels, ToolLabels, labels_of
from gloveport.types import Tool

HOUR_SECONDS = 3600.0
NOTE_SECONDS = 60.0
"""How often a read of the same tool is noted again."""
MAX_KEPT_READS = 1000  # of an agent, before those that no longer count are dropped

ReadKey = tuple[str, tuple[str, ...]]


class Flow:
    """Labels, and the reads of each agent on this host. `stored_reads` returns those in the store, of all hosts."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.stored_reads: Callable[[str, float], Awaitable[Sequence[LabelledRead]]] | None = None
        self.stored_of_session: Callable[[str, str], Awaitable[Sequence[LabelledRead]]] | None = None
        self._sources: Mapping[str, SourceLabels] = {}
        self._reads: dict[str, dict[ReadKey, LabelledRead]] = {}
        self._of_sessions: dict[tuple[str, str], dict[ReadKey, LabelledRead]] = {}
        self._stored: dict[tuple[str, str | None, ReadKey], float] = {}

    def open_sources(self, sources: Mapping[str, SourceLabels]) -> None:
        """State what labels the tools of the sources that are open."""
        self._sources = sources

    def labels_of(self, tool: Tool) -> ToolLabels | None:
        """Return the labels of a tool; None if it has none."""
        return labels_of(tool, self._sources.get(tool.source))

    async def reads_of(self, agent: str, before: float | None = None) -> dict[ReadKey, LabelledRead]:
        """Return what an agent has read since an hour before a time, by default before now."""
        before = self.clock() if before is None else before
        stored = await self.stored_reads(agent, _since(before)) if self.stored_reads is not None else ()
        return {**{(one.tool, one.labels): one for one in stored}, **self.recent(agent, before)}

    def recent(self, agent: str, before: float) -> dict[ReadKey, LabelledRead]:
        """Return what an agent has read on this host since an hour before a time."""
        since = _since(before)
        return {key: one for key, one in self._reads.get(agent, {}).items() if one.at >= since}

    async def reads_of_session(self, agent: str, session: str) -> dict[ReadKey, LabelledRead]:
        """Return what the runs of a session have read."""
        if self.stored_of_session is None:
            return dict(self._of_sessions.get((agent, session), {}))
        return {(one.tool, one.labels): one for one in await self.stored_of_session(agent, session)}

    def forget_session(self, agent: str, session: str) -> None:
        """Forget what the runs of a session have read: it is gone, with its files."""
        self._of_sessions.pop((agent, session), None)
        self._stored.clear()

    def note(self, agent: str, read: LabelledRead, session: str | None = None) -> None:
        """Note what an agent reads now, in a run of a session or of none."""
        if session is not None and self.stored_of_session is None:
            self._of_sessions.setdefault((agent, session), {})[read.tool, read.labels] = read
        known = self._reads.setdefault(agent, {})
        if len(known) >= MAX_KEPT_READS:
            known = self._reads[agent] = self.recent(agent, self.clock())
        known[read.tool, read.labels] = read

    def is_stored(self, agent: str, key: ReadKey, session: str | None = None) -> bool:
        """Return whether the store has had such a read for less than a minute."""
        return abs(self.clock() - self._stored.get((agent, session, key), 0)) < NOTE_SECONDS

    def stored(self, agent: str, read: LabelledRead, session: str | None = None) -> None:
        """Note that a read is in the store."""
        if len(self._stored) >= MAX_KEPT_READS:
            self._stored.clear()
        self._stored[agent, session, (read.tool, read.labels)] = read.at


def _since(before: float) -> float:
    return before - HOUR_SECONDS - NOTE_SECONDS  # a read may be up to a minute later than its note
