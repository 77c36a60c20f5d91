"""The bridge of one run: it counts, queues, makes, records and cancels the run's calls."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gloveport.bridge.builtins import SearchPage, unknown_tool_error
from gloveport.bridge.hints import with_hint
from gloveport.bridge.received_errors import ReceivedErrors
from gloveport.bridge.to_data import IMMUTABLE_TYPES, to_data
from gloveport.bridge.tool_errors import raise_location, to_tool_error
from gloveport.errors import CODES, CallLimit, Origin, ToolError, label
from gloveport.large_values import LARGE_BYTES, is_large, off_loop_if, off_loop_soon
from gloveport.policy import AllowAll
from gloveport.sources.functions.threads import left_running
from gloveport.types import CallRecord, Failure, Limits, ToolCall

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.bridge.bridge import Bridge

OnCall = Callable[[Literal["call-started", "call-ended"], CallRecord], None]

# Questions to the catalog have a budget of their own. Those that cost more than 1 take milliseconds on 10,000 tools.
MAX_QUESTIONS = 10_000
QUESTION_COST = {"search": 10, "describe": 10, "interface": 10, "interfaces": 100}
MAX_SUGGESTIONS = 50
MAX_CUT_SEARCHES = 10
MAX_NAME_CHARS = 5000
MAX_RECORDED_ARGUMENT_BYTES = 2 * 1024 * 1024
ARGUMENTS_NOT_RECORDED = {"…": "not kept: too large"}


class _Call(msgspec.Struct, gc=False):
    """A call that has started. `status` leaves `running` at most once, and never returns to it."""

    id: int
    contract: Contract
    args: list[Any] | None
    started: float
    status: Literal["running", "ok", "failed"] = "running"
    seconds: float | None = None
    error: str | None = None
    origin: Origin | None = None
    named: dict[str, Any] | None = None  # the arguments by name, where finding the names takes long

    @property
    def tool(self) -> str:
        """The tool's path as programs write it."""
        return self.contract.path

    def record(self) -> CallRecord:
        """Return the call as it stands now."""
        if self.args is None:
            args = ARGUMENTS_NOT_RECORDED
        else:
            args = self.contract.named_arguments(self.args) if self.named is None else self.named
        return CallRecord(self.id, self.tool, args, self.status, self.started, self.seconds, self.error, self.origin)


class RunBridge:
    """The calls of one run.

    Invariants: `_slots_in_use` is the number of calls that hold a slot and never exceeds max_concurrent_calls. While a call
    waits for a slot, all slots are in use, and waiting calls get theirs in the order in which they asked.
    """

    def __init__(self, bridge: Bridge, limits: Limits, on_call: OnCall | None, began: float | None) -> None:
        self._bridge = bridge
        self._allows_all = isinstance(bridge.policy, AllowAll)
        self._limits = limits
        self._on_call = on_call
        self._began = time.monotonic() if began is None else began
        self._calls_made = 0
        self._questions_asked = 0
        self._suggestions_made = 0
        self._slots_in_use = 0
        self._waiting_for_slot: deque[asyncio.Future[None]] = deque()
        self._calls: list[_Call] = []
        self._recorded_bytes = 0
        self._cut_searches: dict[str, SearchPage] = {}
        self._closed = False
        self.errors = ReceivedErrors()

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls that have started, in order."""
        return tuple(call.record() for call in self._calls)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user about the calls: search results that were cut, functions that could not be stopped."""
        advice = "narrow it down, or raise its limit"
        pages = self._cut_searches.values()
        cut = [f"tools.search({page.query[:60]!r}) gave {len(page.rows)} of {page.total} tools: {advice}" for page in pages]
        left = Counter(call.tool for call in self._calls if call.status == "running")
        return *cut, *(f"tools.{tool} can't be stopped and still runs ({count} ×)" for tool, count in left.items())

    def with_hint(self, failure: Failure) -> Failure:
        """Return the failure that ended the run, with a hint if it is a common mistake about the tools."""
        return with_hint(failure, self._bridge.catalog)

    async def call(self, call: ToolCall) -> Any:
        """Return the tool's result as plain data; raises ToolError, or CallLimit when the run has made too many calls."""
        contract = self._bridge.contracts.get(call.name)
        if contract is None and call.name in self._bridge.builtins.calls:
            return await self._ask(call)
        try:
            contract, sent, named = await self._admit(call, contract)
        except (ToolError, asyncio.CancelledError) as problem:
            raise self._refusal(problem, call.name) from None
        if self._slots_in_use < self._limits.max_concurrent_calls:
            self._slots_in_use += 1
        else:
            await self._wait_for_slot(contract)
        made: _Call | None = None
        try:
            made = self._start(call, contract, named)
            found = await contract.call(contract.tool, sent)
            value = await _large_to_data(found, contract) if is_large(found) else to_data(found, contract.path)
            if self._closed:
                raise _run_ended_error(contract.path)
            self._finish(made, None)
            return value
        except BaseException as problem:
            error = self._error_for_run(problem, contract)
            if isinstance(error, ToolError):
                self.errors.add(error)
            if made is not None and not left_running(problem):
                self._finish(made, error, raise_location(problem))
            if error is problem:
                raise
            raise error from None
        finally:
            if self._waiting_for_slot:
                self._release_slot()
            else:
                self._slots_in_use -= 1

    async def _ask(self, call: ToolCall) -> Any:
        """Return the result of a built-in. One that goes through tools or schemas does so away from the event loop."""
        self._count_question(call.name)
        if call.name == "search":
            await self._bridge.catalog.prepare_search()
        return await off_loop_if(call.name in QUESTION_COST, self._answer, call.name, call.args)

    async def _admit(
        self, call: ToolCall, contract: Contract | None
    ) -> tuple[Contract, dict[str, Any], dict[str, Any] | None]:
        """Count, look up, validate and decide on a call.

        Return its contract, the arguments to send, and those to record where finding their names takes long.
        """
        if self._closed:
            raise _run_ended_error(call.name)
        self._calls_made += 1
        if self._calls_made > self._limits.max_calls:
            raise CallLimit(f"the program made more than {self._limits.max_calls:,} calls")
        if contract is None:
            slow = not self._bridge.finds_quickly(call.name[:MAX_NAME_CHARS])
            contract = await off_loop_if(slow, self._look_up, call.name)
        if contract.suspended is not None:
            raise ToolError(contract.suspended, code="tool-suspended", tool=contract.path)
        # A private copy is sent: policy, records and listeners read the values that the guest sent (B3).
        if contract.accepts_quickly(call.size or _estimated_size(call)):
            sent, named = contract.accept(call.args), None
        else:
            sent, named = await off_loop_soon(contract.accept_slowly, call.args)
        if not self._allows_all:
            self._decide(contract, call, named)
        return contract, sent, named

    def _refusal(self, problem: BaseException, name: str) -> BaseException:
        """Return what to raise for a call that was not made."""
        if isinstance(problem, ToolError):
            self.errors.add(problem)
            return problem
        return _run_ended_error(name) if self._closed else problem

    def _error_for_run(self, problem: BaseException, contract: Contract) -> BaseException:
        """Return what to raise into the run: a ToolError for exceptions, and for a cancellation that nobody requested."""
        if isinstance(problem, Exception):
            return to_tool_error(problem, contract.path, attributed=contract.errors_attributed)
        if not isinstance(problem, asyncio.CancelledError):
            return problem
        task = asyncio.current_task()
        if self._closed:
            return _run_ended_error(contract.path)
        if task is None or not task.cancelling():
            return ToolError("CancelledError", tool=contract.path, origin="tool")
        return problem

    async def call_sync(self, name: str, args: list[Any]) -> Any:
        """Return the result of a built-in that the program waits for; raises ToolError, or CallLimit after too many."""
        return await self._ask(ToolCall(0, name, args))

    def _count_question(self, name: str) -> None:
        self._questions_asked += QUESTION_COST.get(name, 1)
        if self._questions_asked > MAX_QUESTIONS:
            raise CallLimit("the program asked about its tools too often")

    def _answer(self, name: str, args: list[Any]) -> Any:
        builtin = self._bridge.builtins.sync_calls.get(name)
        if builtin is None:
            raise ToolError(f"there is no synchronous built-in `{name[:100]}`", code="unknown-tool")
        answer = builtin(args if isinstance(args, list) else [args])
        if not isinstance(answer, SearchPage):
            return answer
        if answer.total > len(answer.rows) and len(self._cut_searches) < MAX_CUT_SEARCHES:
            self._cut_searches[answer.query] = answer
        return answer.rows

    def close(self) -> None:
        """Refuse further calls and drop the results of those under way; the caller owns their tasks.

        The records are final from now on: one that says `running` is a function that could not be stopped.
        """
        self._closed = True
        while self._waiting_for_slot:
            self._waiting_for_slot.popleft().cancel()

    def _look_up(self, name: str) -> Contract:
        name = name[:MAX_NAME_CHARS]  # no tool has a longer one: catalog names are shorter
        found = self._bridge.contract(name)
        if found is None:
            self._suggestions_made += 1
            raise unknown_tool_error(self._bridge.catalog, name, guess=self._suggestions_made <= MAX_SUGGESTIONS)
        return found

    def _decide(self, contract: Contract, call: ToolCall, named: dict[str, Any] | None) -> None:
        args = contract.named_arguments(call.args) if named is None else named
        decision = self._bridge.policy.decide(contract.tool, args)
        if decision.verdict == "allow":
            return
        needs = "needs a person's approval, which is not available here" if decision.verdict == "ask" else "is not allowed"
        message = f"`tools.{contract.path}` {needs}{f': {decision.reason}' if decision.reason else ''}"
        hint, setting = CODES["denied"].fix, decision.setting
        refusal = ToolError(message, code="denied", tool=contract.path, hint=hint, setting=setting)
        self._finish(self._start(call, contract, named), refusal)  # a refused call is recorded too
        raise refusal

    async def _wait_for_slot(self, contract: Contract) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_slot.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release_slot()
            if self._closed:
                raise _run_ended_error(contract.path) from None
            raise

    def _release_slot(self) -> None:
        while self._waiting_for_slot:
            turn = self._waiting_for_slot.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._slots_in_use -= 1

    def _start(self, asked: ToolCall, contract: Contract, named: dict[str, Any] | None) -> _Call:
        if self._closed:
            raise _run_ended_error(contract.path)
        # A hostile program must not make the host keep everything it sent: 1000 calls of 16 MiB each.
        self._recorded_bytes += asked.size
        args = asked.args if self._recorded_bytes <= MAX_RECORDED_ARGUMENT_BYTES and asked.size <= LARGE_BYTES else None
        call = _Call(asked.id, contract, args, time.monotonic() - self._began, named=named if args is not None else None)
        self._calls.append(call)
        if self._on_call is not None:
            self._on_call("call-started", call.record())
        return call

    def _finish(self, call: _Call, error: BaseException | None, location: str = "") -> None:
        if self._closed or call.status != "running":
            return
        call.seconds = time.monotonic() - self._began - call.started
        if error is None:
            call.status = "ok"
        else:
            call.status = "failed"
            cancelled = not isinstance(error, ToolError)
            call.origin = "gloveport" if cancelled else error.origin
            what = (
                "cancelled: the call was cancelled" if cancelled else f"{label(error.code, error.origin)}: {error.message}"
            )
            call.error = f"{what}{location}"
        if self._on_call is not None:
            self._on_call("call-ended", call.record())


async def _large_to_data(value: Any, contract: Contract) -> Any:
    """Return a large value as data. What a source has read from JSON just now needs no copy: nobody else has it."""
    if contract.gives_json or type(value) in IMMUTABLE_TYPES:
        return value
    return await off_loop_soon(to_data, value, contract.path)


def _estimated_size(call: ToolCall) -> float:
    return math.inf if is_large(call.args) else LARGE_BYTES


def _run_ended_error(tool: str) -> ToolError:
    return ToolError("the run has ended", code="cancelled", tool=tool)
