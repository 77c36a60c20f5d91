"""The port of one run: it counts, queues, records and cancels the run's calls."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gloveport.bridge.builtins import unknown
from gloveport.bridge.failures import failure
from gloveport.bridge.plain import copied, plain
from gloveport.errors import CallLimit, ToolError
from gloveport.types import CallRecord, Limits, ToolCall

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.bridge.bridge import Bridge

OnCall = Callable[[Literal["call-started", "call-ended"], CallRecord], None]

# Questions to the catalog have a budget of their own. The dear ones take milliseconds on 10,000 tools.
MOST_QUESTIONS = 10_000
DEAR = {"search": 10, "describe": 10, "interface": 10, "interfaces": 100}
MOST_GUESSES = 50
KEPT_BYTES = 16 * 1024 * 1024
GRACE_SECONDS = 0.1


class _Call:
    """A call that has started. `status` leaves `running` once and never comes back."""

    __slots__ = ("args", "error", "id", "seconds", "started", "status", "tool")

    def __init__(self, id: int, tool: str, args: Any, started: float) -> None:
        self.id = id
        self.tool = tool
        self.args = args
        self.started = started
        self.status: Literal["running", "ok", "failed"] = "running"
        self.seconds: float | None = None
        self.error: str | None = None

    def record(self) -> CallRecord:
        return CallRecord(self.id, self.tool, self.args, self.status, self.started, self.seconds, self.error)


class RunBridge:
    """The calls of one run.

    Invariants: `_active` is the number of calls that hold a slot, and is never above max_concurrent_calls; while any
    call waits for a slot it is exactly that, and slots pass on in the order in which they were asked for.
    """

    def __init__(self, bridge: Bridge, limits: Limits, on_call: OnCall | None, began: float | None) -> None:
        self._bridge = bridge
        self._limits = limits
        self._on_call = on_call
        self._began = time.monotonic() if began is None else began
        self._made = 0
        self._asked = 0
        self._guesses = 0
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._calls: list[_Call] = []
        self._kept = 0
        self._closed = False

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls that had started, in their order."""
        return tuple(call.record() for call in self._calls)

    async def call(self, call: ToolCall) -> Any:
        """What the tool answered, as plain data; raises ToolError, or CallLimit when the run has called too often."""
        if call.name in self._bridge.builtins.calls:
            return self.call_sync(call.name, call.args)
        if self._closed:
            raise _ended(call.name)
        self._made += 1
        if self._made > self._limits.max_calls:
            raise CallLimit(f"the program made more than {self._limits.max_calls:,} calls")
        contract = self._bridge.contracts.get(call.name) or self._look_up(call.name)
        # Nobody else holds `sent`: policy, records and listeners get a copy of their own (B3).
        sent = contract.accept(call.args)
        args = copied(sent)
        self._decide(contract, args)
        if self._active < self._limits.max_concurrent_calls:
            self._active += 1
        else:
            await self._turn(contract)
        try:
            return await self._make(call.id, contract, args, sent)
        finally:
            self._release()

    def call_sync(self, name: str, args: list[Any]) -> Any:
        """The answer of a built-in, at once; raises ToolError, or CallLimit after too many of them."""
        self._asked += DEAR.get(name, 1)
        if self._asked > MOST_QUESTIONS:
            raise CallLimit("the program asked about its tools too often")
        builtin = self._bridge.builtins.sync_calls.get(name)
        if builtin is None:
            raise ToolError(f"no built-in `{name[:100]}` answers at once", code="unknown-tool")
        return builtin(args if isinstance(args, list) else [args])

    async def close(self) -> None:
        """Cancels what still runs and drops what it may still answer; returns soon, whatever the tools do."""
        self._closed = True
        while self._waiting:
            self._waiting.popleft().cancel()
        tasks = [task for task in self._tasks if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for call in self._calls:
            if call.status == "running":
                self._finish(call, _ended(call.tool))

    def _look_up(self, name: str) -> Contract:
        found = self._bridge.contract(name)
        if found is None:
            self._guesses += 1
            raise unknown(self._bridge.catalog, name, guess=self._guesses <= MOST_GUESSES)
        return found

    def _decide(self, contract: Contract, args: dict[str, Any]) -> None:
        decision = self._bridge.policy.decide(contract.tool, copied(args))
        if decision.verdict == "allow":
            return
        needs = "needs a person's approval, which can't be had here" if decision.verdict == "ask" else "is not allowed"
        reason = f": {decision.reason}" if decision.reason else ""
        raise ToolError(f"`tools.{contract.path}` {needs}{reason}", code="denied", tool=contract.path)

    async def _make(self, id: int, contract: Contract, args: dict[str, Any], sent: dict[str, Any]) -> Any:
        if self._closed:
            raise _ended(contract.path)
        call = self._start(id, contract.path, args)
        try:
            value = await self._answer(contract, sent)
            if self._closed:
                raise _ended(contract.path)
            value = plain(value, contract.path)
        except Exception as problem:  # noqa: BLE001 - the edge: whatever a source raises becomes data
            error = failure(problem, contract.path)
            self._finish(call, error)
            raise error from None
        except BaseException as problem:
            self._finish(call, problem)
            raise
        self._finish(call, None)
        return value

    async def _answer(self, contract: Contract, sent: dict[str, Any]) -> Any:
        """What the source answers; a cancellation that nobody here asked for is the tool's own failure."""
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            return await contract.source.call(contract.tool, sent)
        except asyncio.CancelledError:
            if self._closed:
                raise _ended(contract.path) from None
            if task is None or not task.cancelling():
                raise ToolError("CancelledError", tool=contract.path) from None
            raise
        finally:
            self._tasks.discard(task)

    async def _turn(self, contract: Contract) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            if self._closed:
                raise _ended(contract.path) from None
            raise

    def _release(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._active -= 1

    def _start(self, id: int, tool: str, args: dict[str, Any]) -> _Call:
        # A hostile program must not make the host keep all it ever sent: 1000 calls of 16 MiB each.
        self._kept += len(msgspec.json.encode(args))
        shown = args if self._kept <= KEPT_BYTES else {"…": "not kept: the calls of this run were too large"}
        call = _Call(id, tool, shown, time.monotonic() - self._began)
        self._calls.append(call)
        if self._on_call is not None:
            self._on_call("call-started", call.record())
        return call

    def _finish(self, call: _Call, error: BaseException | None) -> None:
        if call.status != "running":
            return
        call.seconds = time.monotonic() - self._began - call.started
        call.status = "ok" if error is None else "failed"
        if isinstance(error, ToolError):
            call.error = f"{error.code}: {error.message}"
        elif error is not None:
            call.error = "cancelled: the call was cancelled"
        if self._on_call is not None:
            self._on_call("call-ended", call.record())


def _ended(tool: str) -> ToolError:
    return ToolError("the run has ended", code="cancelled", tool=tool)
