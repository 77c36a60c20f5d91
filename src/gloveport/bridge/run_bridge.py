"""The port of one run: it counts, queues, records and cancels the run's calls."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gloveport.bridge.builtins import SearchPage, unknown_tool_error
from gloveport.bridge.hints import with_hint
from gloveport.bridge.to_data import to_data
from gloveport.bridge.tool_errors import failure, raise_location
from gloveport.errors import CallLimit, ToolError
from gloveport.policy import AllowAll
from gloveport.sources.functions.threads import left_running
from gloveport.types import CallRecord, Failure, Limits, ToolCall

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.bridge.bridge import Bridge

OnCall = Callable[[Literal["call-started", "call-ended"], CallRecord], None]

# Questions to the catalog have a budget of their own. The dear ones take milliseconds on 10,000 tools.
MOST_QUESTIONS = 10_000
DEAR = {"search": 10, "describe": 10, "interface": 10, "interfaces": 100}
MOST_GUESSES = 50
MOST_NOTES = 10
KEPT_BYTES = 2 * 1024 * 1024
NOT_KEPT = {"…": "not kept: the calls of this run were too large"}


class _Call(msgspec.Struct, gc=False):
    """A call that has started. `status` leaves `running` at most once and never comes back."""

    id: int
    contract: Contract
    args: list[Any] | None
    started: float
    status: Literal["running", "ok", "failed"] = "running"
    seconds: float | None = None
    error: str | None = None

    @property
    def tool(self) -> str:
        """The tool's name as programs write it."""
        return self.contract.path

    def record(self) -> CallRecord:
        """The call so far."""
        args = NOT_KEPT if self.args is None else self.contract.named(self.args)
        return CallRecord(self.id, self.tool, args, self.status, self.started, self.seconds, self.error)


class RunBridge:
    """The calls of one run.

    Invariants: `_active` is the number of calls that hold a slot, and is never above max_concurrent_calls; while any
    call waits for a slot it is exactly that, and slots pass on in the order in which they were asked for.
    """

    def __init__(self, bridge: Bridge, limits: Limits, on_call: OnCall | None, began: float | None) -> None:
        self._bridge = bridge
        self._allows_all = isinstance(bridge.policy, AllowAll)
        self._limits = limits
        self._on_call = on_call
        self._began = time.monotonic() if began is None else began
        self._made = 0
        self._asked = 0
        self._guesses = 0
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._calls: list[_Call] = []
        self._kept = 0
        self._pages: dict[str, SearchPage] = {}
        self._closed = False
        self.error_codes: set[str] = set()  # the codes of the errors that the run was given

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls that had started, in their order."""
        return tuple(call.record() for call in self._calls)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the calls: lists that were cut, functions that could not be stopped."""
        way = "narrow it down, or raise its limit"
        pages = self._pages.values()
        cut = [f"tools.search({page.asked[:60]!r}) gave {len(page.rows)} of {page.total} tools: {way}" for page in pages]
        left = Counter(call.tool for call in self._calls if call.status == "running")
        return *cut, *(f"tools.{tool} can't be stopped and still runs ({count} ×)" for tool, count in left.items())

    def with_hint(self, failure: Failure) -> Failure:
        """What ended the run, with a hint where it is a common mistake about the tools."""
        return with_hint(failure, self._bridge.catalog)

    async def call(self, call: ToolCall) -> Any:
        """What the tool answered, as plain data; raises ToolError, or CallLimit when the run has called too often."""
        contract = self._bridge.contracts.get(call.name)
        if contract is None and call.name in self._bridge.builtins.calls:
            return await self._ask(call)
        try:
            contract, sent = self._admit(call, contract)
        except ToolError as refusal:
            self.error_codes.add(refusal.code)
            raise
        if self._active < self._limits.max_concurrent_calls:
            self._active += 1
        else:
            await self._turn(contract)
        made: _Call | None = None
        try:
            made = self._start(call, contract)
            value = to_data(await contract.call(contract.tool, sent), contract.path)
            if self._closed:
                raise _ended(contract.path)
            self._finish(made, None)
            return value
        except BaseException as problem:
            error = self._told(problem, contract)
            if isinstance(error, ToolError):
                self.error_codes.add(error.code)
            if made is not None and not left_running(problem):
                self._finish(made, error, raise_location(problem))
            if error is problem:
                raise
            raise error from None
        finally:
            if self._waiting:
                self._release()
            else:
                self._active -= 1

    async def _ask(self, call: ToolCall) -> Any:
        """The answer of a built-in; what the first search has to load does not keep other runs waiting."""
        self._count_question(call.name)
        if call.name == "search":
            await self._bridge.catalog.prepare_search()
        return self._answer(call.name, call.args)

    def _admit(self, call: ToolCall, contract: Contract | None) -> tuple[Contract, dict[str, Any]]:
        """The call's contract and its arguments: counted, looked up, valid, allowed."""
        if self._closed:
            raise _ended(call.name)
        self._made += 1
        if self._made > self._limits.max_calls:
            raise CallLimit(f"the program made more than {self._limits.max_calls:,} calls")
        if contract is None:
            contract = self._look_up(call.name)
        if contract.suspended is not None:
            raise ToolError(contract.suspended, code="tool-suspended", tool=contract.path)
        # A copy that nobody else holds: policy, records and listeners look at what the guest sent (B3).
        sent = contract.accept(call.args)
        if not self._allows_all:
            try:
                self._decide(contract, call)
            except ToolError as refusal:  # what was refused is on record too
                self._finish(self._start(call, contract), refusal)
                raise
        return contract, sent

    def _told(self, problem: BaseException, contract: Contract) -> BaseException:
        """What the caller is told: whatever a source raises becomes data; a cancellation nobody asked for is a failure."""
        if isinstance(problem, Exception):
            return failure(problem, contract.path)
        if not isinstance(problem, asyncio.CancelledError):
            return problem
        task = asyncio.current_task()
        if self._closed:
            return _ended(contract.path)
        if task is None or not task.cancelling():
            return ToolError("CancelledError", tool=contract.path)
        return problem

    def call_sync(self, name: str, args: list[Any]) -> Any:
        """The answer of a built-in, at once; raises ToolError, or CallLimit after too many of them."""
        self._count_question(name)
        return self._answer(name, args)

    def _count_question(self, name: str) -> None:
        self._asked += DEAR.get(name, 1)
        if self._asked > MOST_QUESTIONS:
            raise CallLimit("the program asked about its tools too often")

    def _answer(self, name: str, args: list[Any]) -> Any:
        builtin = self._bridge.builtins.sync_calls.get(name)
        if builtin is None:
            raise ToolError(f"no built-in `{name[:100]}` answers at once", code="unknown-tool")
        answer = builtin(args if isinstance(args, list) else [args])
        if not isinstance(answer, SearchPage):
            return answer
        if answer.total > len(answer.rows) and len(self._pages) < MOST_NOTES:
            self._pages[answer.asked] = answer
        return answer.rows

    def close(self) -> None:
        """Lets no further call be made and drops what those under way may still answer; their tasks are the caller's.

        The records are final: one that says `running` belongs to a function that could not be stopped, and goes on.
        """
        self._closed = True
        while self._waiting:
            self._waiting.popleft().cancel()

    def _look_up(self, name: str) -> Contract:
        found = self._bridge.contract(name)
        if found is None:
            self._guesses += 1
            raise unknown_tool_error(self._bridge.catalog, name, guess=self._guesses <= MOST_GUESSES)
        return found

    def _decide(self, contract: Contract, call: ToolCall) -> None:
        decision = self._bridge.policy.decide(contract.tool, contract.named(call.args))
        if decision.verdict == "allow":
            return
        needs = "needs a person's approval, which can't be had here" if decision.verdict == "ask" else "is not allowed"
        reason = f": {decision.reason}" if decision.reason else ""
        raise ToolError(f"`tools.{contract.path}` {needs}{reason}", code="denied", tool=contract.path)

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

    def _start(self, asked: ToolCall, contract: Contract) -> _Call:
        if self._closed:
            raise _ended(contract.path)
        # A hostile program must not make the host keep all it ever sent: 1000 calls of 16 MiB each.
        self._kept += asked.size
        args = asked.args if self._kept <= KEPT_BYTES else None
        call = _Call(asked.id, contract, args, time.monotonic() - self._began)
        self._calls.append(call)
        if self._on_call is not None:
            self._on_call("call-started", call.record())
        return call

    def _finish(self, call: _Call, error: BaseException | None, place: str = "") -> None:
        if self._closed or call.status != "running":
            return
        call.seconds = time.monotonic() - self._began - call.started
        if error is None:
            call.status = "ok"
        else:
            call.status = "failed"
            told = isinstance(error, ToolError)
            call.error = f"{error.code}: {error.message}{place}" if told else "cancelled: the call was cancelled"
        if self._on_call is not None:
            self._on_call("call-ended", call.record())


def _ended(tool: str) -> ToolError:
    return ToolError("the run has ended", code="cancelled", tool=tool)
