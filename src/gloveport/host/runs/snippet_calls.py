"""Runs the snippets that a run calls, each in a sandbox and with a record of its own.

A snippet is a run below the run that called it. Its calls are decided on as those of the caller, count in the caller's
limits and budgets, and ask under the caller's id. Its id follows from the call, so that a resumed caller finds it again:
one that has ended is not run again, and one that was interrupted goes on, so that none of its writes is made twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.bridge.made_call import MadeCall
from gloveport.catalog import Catalog
from gloveport.errors import CallLimit, ToolError
from gloveport.host.runs.held_runs import HeldRun
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_request import NO_INPUT, RunRequest, SnippetCaller
from gloveport.host.snippet_source import SnippetSource
from gloveport.large_values import off_loop
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.history import RunHistory
from gloveport.store.snippets import SOURCE, Snippet
from gloveport.types import Language, Limits, Outcome

MAX_DEPTH = 3
MAX_CONCURRENT_SNIPPETS = 4  # of one run; a snippet runs one at a time
CALLS_OF_A_RUN = 10_000_000  # more than the largest max_calls


@dataclass(frozen=True, slots=True)
class SnippetRunner:
    """What running a snippet needs of the port: its store, an attempt at a run, and the options of a process.

    `bridge` returns the bridge of an agent, once the sources of these tools are open.
    """

    store: PortStore
    run: Callable[[RunRequest, HeldRun | None], Coroutine[Any, Any, Outcome]]
    options: Callable[[Language, str | None, Limits], ProcessOptions]
    bridge: Callable[[str, str], Coroutine[Any, Any, Bridge]]


class SnippetCalls:
    """The snippets that one run calls."""

    def __init__(
        self,
        runner: SnippetRunner,
        bridge: Bridge,
        run: str,
        limits: Limits,
        *,
        caller: SnippetCaller | None = None,
        held: HeldRun | None = None,
        packages: frozenset[str] | None = None,
    ) -> None:
        self._runner = runner
        self._bridge = bridge
        self._run = run
        self._limits = limits
        self._caller = caller
        self._held = held
        self._packages = packages
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_SNIPPETS if caller is None else 1)

    async def call(self, bridge: RunBridge, made: MadeCall, args: dict[str, Any]) -> Any:
        """Return the result of a snippet. Raise ToolError if it fails, and CallLimit if it exceeds `max_calls`."""
        source = made.contract.source
        assert isinstance(source, SnippetSource)
        snippet = source.snippets[made.contract.tool.address]
        names = (*(self._caller.names if self._caller is not None else ()), snippet.name)
        self._check_depth(names, made.tool)
        opened = await self._runner.bridge(self._bridge.agent, " ".join(snippet.tools))
        await off_loop(_check_tools, opened.catalog, bridge, snippet, made.tool)
        base = ((self._caller.call_base if self._caller is not None else 0) + made.id) * CALLS_OF_A_RUN
        top = self._run if self._caller is None else self._caller.run
        caller = SnippetCaller(top, base, names, bridge, partial(bridge.snippet_waits, made), self._caller)
        async with self._slots:
            outcome = await self._outcome(snippet, args, caller, snippet_run(self._run, made.id))
        if (error := outcome.error) is None:
            return outcome.value
        if error.code == "call-limit":
            raise CallLimit(error.message)
        message = f"the snippet {snippet.name} failed: {error.summary}"
        raise ToolError(message, code=error.code, tool=made.tool, hint=error.hint, data=error.data, origin=error.origin)

    async def count_past(self, bridge: RunBridge, history: RunHistory, run: str) -> None:
        """Count the calls of the snippets that had ended before their run was resumed: they are calls of its caller."""
        for past in history.calls:
            if past.reply is None or not past.call.name.startswith(f"{SOURCE}."):
                continue
            stored = await self._runner.store.find_exactly(snippet_run(run, past.call.id))
            if stored is not None and stored.agent == self._bridge.agent and stored.obstacle is None:
                ended = await self._runner.store.history(stored)
                for made in ended.calls:
                    if not made.is_sync and made.reply is not None:
                        bridge.count_past(made)
                await self.count_past(bridge, ended, stored.id)

    async def _outcome(self, snippet: Snippet, args: dict[str, Any], caller: SnippetCaller, run: str) -> Outcome:
        store = self._runner.store
        stored = await store.find_exactly(run)
        if stored is not None and (stored.agent != self._bridge.agent or stored.obstacle is not None):
            message = f"the id of this run of the snippet {snippet.name} is taken by another run: {run}"
            raise ToolError(message, code="snippet-refused")
        if stored is not None and stored.is_final:
            return await store.outcome(stored)
        if stored is not None:
            request = await store.request(stored)
        else:
            options = self._runner.options(snippet.language, snippet.engine, self._limits)
            given = NO_INPUT if snippet.parameters is None else args
            request = RunRequest(
                run, snippet.code, snippet.language, options, False, given, self._limits, {}, None, self._bridge.agent
            )
            request = replace(request, packages=self._packages)
        return await self._runner.run(replace(request, caller=caller), self._held)

    @staticmethod
    def _check_depth(names: tuple[str, ...], tool: str) -> None:
        shown = " → ".join(names)
        if names[-1] in names[:-1]:
            raise ToolError(f"a snippet can't call itself: {shown}", code="snippet-refused", tool=tool)
        if len(names) > MAX_DEPTH:
            message = f"snippets call each other more than {MAX_DEPTH} deep: {shown}"
            raise ToolError(message, code="snippet-refused", tool=tool)


def snippet_run(run: str, call: int) -> str:
    """Return the id of the run of the snippet that a call of a run runs."""
    return hashlib.sha256(f"{run} {call}".encode()).hexdigest()[:32]


def with_snippets(context: RunContext, runner: SnippetRunner | None, bridge: Bridge, limits: Limits) -> RunContext:
    """Return the context of calls that belong to no run, and may be of snippets."""
    return (
        context if runner is None else replace(context, run_snippet=SnippetCalls(runner, bridge, context.run, limits).call)
    )


def _check_tools(catalog: Catalog, bridge: RunBridge, snippet: Snippet, tool: str) -> None:
    """Raise ToolError if a tool is missing that the snippet needs; note those whose definitions have changed."""
    missing = [address for address in snippet.tools if catalog.find(address) is None]
    if missing:
        sources = sorted({address.partition(".")[0] for address in missing})
        problems = [found.message for name in sources if (found := catalog.source_problem(name))]
        why = f": {'; '.join(problems)}" if problems else ""
        message = f"the snippet {snippet.name} needs {', '.join(missing[:10])}, which {_are(missing)} not there{why}"
        setting = f"add the source {', '.join(sources)}, or look at `gloveport sources`"
        raise ToolError(message[:2000], code="snippet-refused", tool=tool, setting=setting)
    changed = [address for address, known in snippet.tools.items() if catalog.fingerprint(address) != known]
    if changed:
        bridge.warn(f"{', '.join(changed[:10])} changed after the snippet {snippet.name} was saved")


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
