"""Calls that belong to no run: one call of a tool, and the reads of a replay."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gloveport.bridge import Bridge, RunContext
from gloveport.errors import ToolError
from gloveport.errors.codes import HINTED_FOR_PROGRAMS
from gloveport.host.governance import Governance
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.snippet_calls import SnippetRunner, with_snippets
from gloveport.host.source_set import SourceSet
from gloveport.large_values import EncodedValue, off_loop
from gloveport.store.run_audit import RunAudit
from gloveport.types import Limits, ToolCall


class SingleCalls:
    """Makes calls outside of runs, each checked and audited like a call of a program."""

    def __init__(
        self,
        governance: Governance,
        store: PortStore | None,
        sources: SourceSet,
        bridge: Callable[[str], Awaitable[Bridge]],
        snippets: SnippetRunner | None,
    ) -> None:
        self._governance = governance
        self._store = store
        self._sources = sources
        self._bridge = bridge
        self._snippets = snippets

    async def call(self, tool: str, args: Mapping[str, Any] | None, agent: str, limits: Limits) -> Any:
        """Call one tool and return its result; raise ToolError when it fails."""
        await self._sources.open(naming=tool)
        bridge = await self._bridge(agent)
        run = bridge.for_run(limits, with_snippets(self._context(agent), self._snippets, bridge, limits))
        try:
            found = await run.call(ToolCall(1, tool, [dict(args or {})]))
            return await off_loop(found.value) if isinstance(found, EncodedValue) else found
        except ToolError as error:
            if error.origin == "gloveport" and error.code in HINTED_FOR_PROGRAMS:
                error.hint = None
            raise
        finally:
            run.close()

    async def live(self, agent: str) -> tuple[Bridge, RunContext]:
        """Return what a replay needs to make the reads of an agent anew."""
        await self._sources.open()
        return await self._bridge(agent), self._context(agent)

    def _context(self, agent: str) -> RunContext:
        """Return the context of calls that belong to no run in the store."""
        self._governance.agent(agent)
        name = secrets.token_hex(16)
        audit = RunAudit(self._store.open(self._governance.desk), name, agent) if self._store is not None else None
        return RunContext(name, audit=audit)
