"""What one run has read, with the snippets that it calls, and what its agent read in the hour before it began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gloveport.policy.flow import NOTE_SECONDS, Flow, ReadKey
from gloveport.rules.labels import LabelledRead, ToolLabels, reads_behind
from gloveport.types import Tool

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract

LOOK_SECONDS = 1.0
UNKNOWN_TOOL = ToolLabels(private=True, untrusted=True)
"""The labels of a tool that a resumed run has called and that is gone: the safe side."""


class RunFlow:
    """The labelled reads of one run. Its own count as long as it goes on, and those of its agent as when it began.

    Those of its session count, too: they may be in its files.

    A read is noted before it is made. Arguments are fixed when a call is made, so they can hold only what was read by then.
    """

    def __init__(self, flow: Flow, agent: str, run: str, session: str | None = None) -> None:
        self._flow = flow
        self._agent = agent
        self._run = run
        self._session = session
        self._began = flow.clock()
        self._own: dict[ReadKey, LabelledRead] = {}
        self._inherited: Mapping[ReadKey, LabelledRead] = {}
        self._looked = 0.0  # in the store, for what other hosts have noted

    async def reads_behind(self, tool: Tool, labels: ToolLabels) -> tuple[LabelledRead, ...]:
        """Return the reads because of which a call that may send data out asks; raise StoreError."""
        if abs(self._flow.clock() - self._looked) >= LOOK_SECONDS:
            # Not each time: most of what a run knows came with its program and input, or it has read it itself.
            inherited = await self._flow.reads_of(self._agent, self._began)
            if self._session is not None:
                inherited = {**await self._flow.reads_of_session(self._agent, self._session), **inherited}
            self._inherited = inherited
            self._looked = self._flow.clock()
        recent = self._flow.recent(self._agent, self._began)
        return reads_behind(tool, labels, {**self._inherited, **recent, **self._own}.values())

    def note(self, contract: Contract) -> LabelledRead | None:
        """Note that a tool is called now. Return the read if the store must have it before the call is made."""
        tool, labels = contract.tool.address, contract.labels
        if labels is None or not (gives := labels.gives):
            return None
        key, now = (tool, gives), self._flow.clock()
        read = self._own.get(key)
        if read is None or abs(now - read.at) >= NOTE_SECONDS:
            read = self._own[key] = LabelledRead(tool, gives, now, self._run)
            self._flow.note(self._agent, read, self._session)
        return None if self._flow.is_stored(self._agent, key, self._session) else read

    def stored(self, read: LabelledRead) -> None:
        """Note that a read is in the store."""
        self._flow.stored(self._agent, read, self._session)

    def resume(self, began: float) -> None:
        """State when a run that is resumed began: it inherits what its agent had read by then."""
        self._began = min(self._began, began)

    def restore(self, tool: str, labels: ToolLabels | None, at: float) -> None:
        """Take over a read of the run before it was resumed."""
        if labels is not None and labels.gives:
            self._own[tool, labels.gives] = LabelledRead(tool, labels.gives, at, self._run)
