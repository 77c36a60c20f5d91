"""Replays a run with live reads. Its writes are not made: they get the recorded replies."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.bridge.bridge import PAGE_SUFFIX
from gloveport.bridge.past_calls import error_in_reply
from gloveport.errors import OptionError, ToolError
from gloveport.host.engine_pools import EnginePools
from gloveport.host.failures import internal_error
from gloveport.host.sessions.run_session import fill_workspace
from gloveport.large_values import off_loop
from gloveport.sandbox.engines.registry import every_engine
from gloveport.sandbox.history import PastCall, RepeatedFrames, RunHistory
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.replay import replay
from gloveport.sandbox.run_attempt import RunAttempt
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.workspace import WorkspaceFiles
from gloveport.types import Divergence, Limits, LogLine, Recording, ToolCall
from gloveport.values import encode


class LiveReads:
    """What the sandbox may use of a run that is repeated. It records the frames, to compare them afterwards.

    Only a tool that is known here, and known to read, is called.
    """

    def __init__(self, run: str, bridge: Bridge, calls: RunBridge, history: RunHistory) -> None:
        self._run = run
        self._bridge = bridge
        self._calls = calls
        self._replies: dict[tuple[str, bytes], deque[PastCall]] = defaultdict(deque)
        for past in history.calls:
            if past.reply is not None:
                self._replies[past.call.name, encode(past.call.args)].append(past)
        self.call_sync = calls.call_sync
        self.stop_asking = calls.approvals.stop
        self.frames: list[bytes] = []

    async def call(self, call: ToolCall) -> Any:
        """Return the result of a read, or the recorded result of a write."""
        entry = self._bridge.catalog.entry(call.name.removesuffix(PAGE_SUFFIX))
        if call.name in self._bridge.builtins.calls or (entry is not None and not entry.tool.writes):
            return await self._calls.call(call)
        recorded = self._replies.get((call.name, encode(call.args)))
        if not recorded:
            raise ToolError(
                f"the record has no such call of tools.{call.name}, and writes are not made", code="replay-diverged"
            )
        past = recorded.popleft()
        assert past.reply is not None
        if past.reply[0] is not True:
            raise error_in_reply(past)
        return past.reply[1]

    async def call_again(self, past: PastCall) -> Any:
        """Return the result of a call; nothing is resumed here."""
        return await self.call(past.call)

    def report_defect(self, error: Exception) -> ToolError:
        """Log a defect of the host; return an error that shows the guest none of its internals."""
        return ToolError(internal_error(self._run, error)["message"], code="internal-error")

    def log(self, line: LogLine) -> None:
        """Take a line of output, which is compared as a frame."""

    def emit(self, value: Any) -> None:
        """Take a value, which is compared as a frame."""

    def event(self, payload: bytes) -> None:
        """Take an event. The record has others where reads return something else now."""

    def frame(self, payload: bytes) -> None:
        """Keep a frame that the guest sent."""
        self.frames.append(payload)


PackageFolders = tuple[tuple[str, int], ...]
LiveBridge = Callable[[str], Awaitable[tuple[Bridge, RunContext]]]


async def replay_run(
    pools: EnginePools, recording: Recording, limits: Limits, live: LiveBridge | None, packages: PackageFolders = ()
) -> Divergence | None:
    """Return the first difference between a recorded run and the same run now. With `live`, its reads are made anew."""
    limits = limits.with_(memory_mb=recording.memory_mb)
    language = every_engine()[recording.engine].languages[0]
    kept = recording.workspace
    quota = None if kept is None else WorkspaceQuota(kept.max_bytes, kept.max_files, kept.path)
    options = replace(pools.options(language, recording.engine, limits, workspace=quota), packages=packages)
    if live is None:
        return await replay_recorded(pools.find(options), recording, limits)
    if recording.agent is None:
        raise OptionError(
            "a run of another machine is replayed from its record alone", hint="leave out --live-reads (live_reads=)"
        )
    bridge, context = await live(recording.agent)
    return await replay_with_live_reads(pools.find(options), bridge, context, recording, limits)


async def replay_recorded(pool: Pool[RunWorker], recording: Recording, limits: Limits) -> Divergence | None:
    """Return the first difference between a recording and a run of the same events, without a call."""
    worker = await pool.take()
    try:
        async with _workspace(worker, recording):
            return await replay(worker, recording, limits)
    finally:
        pool.replace(worker)


async def replay_with_live_reads(
    pool: Pool[RunWorker], bridge: Bridge, context: RunContext, recording: Recording, limits: Limits
) -> Divergence | None:
    """Return the first difference between a recorded run and the same program with reads that are made now."""
    worker = await pool.take()
    calls = bridge.for_run(limits, context)
    try:
        history = await off_loop(RunHistory.of, recording)
        port = await off_loop(LiveReads, context.run, bridge, calls, history)
        async with _workspace(worker, recording):
            await RunAttempt(worker, port, limits, port).start_again(history)
    finally:
        calls.close()
        pool.replace(worker)
    return await off_loop(_difference, history, port.frames)


@asynccontextmanager
async def _workspace(worker: RunWorker, recording: Recording) -> AsyncIterator[None]:
    """Put into the workspace of a worker what that of the recorded run has held at its start, if it had one."""
    if (kept := recording.workspace) is None:
        yield
        return
    files = WorkspaceFiles(kept.files, frozenset(kept.folders))
    workspace = await fill_workspace(worker, files, WorkspaceQuota(kept.max_bytes, kept.max_files))
    try:
        yield
    finally:
        workspace.close()


def _difference(history: RunHistory, frames: list[bytes]) -> Divergence | None:
    repeated = RepeatedFrames(history.recording)
    for place, frame in enumerate(frames):
        if repeated.are_complete:
            return Divergence(place, None, frame) if history.has_ended else repeated.difference
        if (found := repeated.take(frame)) is not None:
            return found
    return repeated.difference if repeated.are_complete else repeated.ended()
