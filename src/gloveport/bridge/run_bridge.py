"""The bridge of one run: it counts, queues, makes, records and cancels the run's calls."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gloveport.bridge.builtins import RunQuestions, unknown_tool_error
from gloveport.bridge.hints import with_hint
from gloveport.bridge.made_call import AdmittedCall, MadeCall, recorded_arguments
from gloveport.bridge.past_calls import error_in_reply, past_record
from gloveport.bridge.received_errors import ReceivedErrors
from gloveport.bridge.refusals import (
    ask_whether_made,
    check_suspended,
    denied_by_person,
    denied_by_rules,
    not_recorded,
    out_of_budget,
    outcome_unknown,
    run_ended,
    too_large_to_ask,
)
from gloveport.bridge.run_approvals import RunApprovals
from gloveport.bridge.run_context import RunContext
from gloveport.bridge.run_flow import UNKNOWN_TOOL, RunFlow
from gloveport.bridge.to_data import copy_data, large_to_data, to_data
from gloveport.bridge.tool_errors import raise_location, to_tool_error
from gloveport.errors import CallLimit, StoreError, ToolError, label
from gloveport.large_values import LARGE_BYTES, LARGE_VALUES, is_large, off_loop, off_loop_if, off_loop_soon
from gloveport.rules.labels import LabelledRead, decision_after
from gloveport.sources.functions.threads import left_running
from gloveport.store.run_audit import RunAudit, encoded
from gloveport.types import CALLER_KIND, CallEvent, CallRecord, CallRequest, Decision, Failure, Limits, Tool, ToolCall

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.bridge.bridge import Bridge
    from gloveport.rules.budgets import Budget
    from gloveport.sandbox.history import PastCall, RunHistory

MAX_SUGGESTIONS = 50
MAX_NAME_CHARS = 5000
MAX_ASKED_BYTES = 256 * 1024  # of arguments that a person is asked about
MAX_RECORDED_ARGUMENT_BYTES = 2 * 1024 * 1024


class RunBridge:
    """The calls of one run.

    Invariants: `_slots_in_use` is the number of calls that hold a slot and never exceeds max_concurrent_calls. While a call
    waits for a slot, all slots are in use, and waiting calls get theirs in the order in which they asked. A call that waits
    for a person has no slot yet.
    """

    def __init__(self, bridge: Bridge, limits: Limits, context: RunContext) -> None:
        self._bridge = bridge
        self._limits = limits
        self._context = context
        self._on_call = context.on_call
        self._began = time.monotonic() if context.began is None else context.began
        self.approvals = RunApprovals(bridge, context)
        self.flow = RunFlow(bridge.flow, bridge.agent, context.run, context.session)
        self.errors = ReceivedErrors()
        self._questions = RunQuestions(bridge.builtins, bridge.catalog, self.errors)
        self._past: list[CallRecord] = []
        self.budgets_used: Counter[str] = Counter()
        self._calls_made = 0
        self._suggestions_made = 0
        self._slots_in_use = 0
        self._waiting_for_slot: deque[asyncio.Future[None]] = deque()
        self._calls: list[MadeCall] = []
        self._recorded_bytes = 0
        self._warnings: dict[str, None] = {}
        self._closed = False

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls that have started, in order."""
        return *self._past, *(call.record() for call in self._calls)

    @property
    def is_calling(self) -> bool:
        """Whether a call runs that does not wait for a person."""
        return any(call.status == "running" for call in self._calls)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the user about the calls: search results that were cut, functions that could not be stopped."""
        left = Counter(call.tool for call in self._calls if call.status == "running")
        return (
            *self._questions.notes,
            *self._warnings,
            *(f"tools.{tool} can't be stopped and still runs ({count} ×)" for tool, count in left.items()),
        )

    def with_hint(self, failure: Failure, *, has_files: bool) -> Failure:
        """Return the failure that ended the run, with a hint if it is a common mistake about the tools."""
        return with_hint(failure, self._bridge.catalog, has_files=has_files)

    async def call(self, call: ToolCall) -> Any:
        """Return the tool's result as plain data; raises ToolError, or CallLimit when the run has made too many calls."""
        contract = self._bridge.contracts.get(call.name)
        if contract is None and call.name in self._bridge.builtins.calls:
            return await self._questions.ask(call.name, call.args)
        try:
            admitted = await self._admit(call, contract)
        except (ToolError, asyncio.CancelledError) as problem:
            raise self._refusal(problem, call.name) from None
        return await self._carry_out(call, admitted)

    async def _carry_out(self, call: ToolCall, admitted: AdmittedCall) -> Any:
        """Count a call in its budgets, wait for a slot, and make it."""
        if self._bridge.check_call is not None:
            await self._check(call, admitted)
        contract = admitted.contract
        if budgets := self._budgets_of(contract.tool):
            await self._take_budgets(budgets, call, admitted)
            if contract.tool.kind == "snippet":  # its own calls run at the same time, and wait for their turn
                self._bridge.policy.counts.give_back(budgets, self._bridge.agent)
                budgets = ()
        try:
            if self._slots_in_use < self._limits.max_concurrent_calls:
                self._slots_in_use += 1
            else:
                await self._wait_for_slot(contract)
            return await self._make(call, admitted)
        finally:
            if budgets:
                self._bridge.policy.counts.give_back(budgets, self._bridge.agent)

    async def _check(self, call: ToolCall, admitted: AdmittedCall) -> None:
        """Ask the plugins about a call that is allowed. Raise ToolError if one denies it; none can change it."""
        tool, sent, check_call = admitted.contract.tool, admitted.sent, self._bridge.check_call
        assert check_call is not None
        if (reason := await check_call(self._context.run, self._bridge.agent, tool, sent)) is None:
            return
        made = admitted.made
        try:
            made = made or self._record(call, admitted)
            decision = Decision("deny", reason)
            if self._context.audit is not None:
                self._context.audit.denied(call.id, tool.address, recorded_arguments(sent, call), decision)
            raise denied_by_rules(made.tool, decision)
        except ToolError as problem:
            if made is not None:
                self._finish(made, problem)
            raise self._refusal(problem, call.name) from None

    async def _make(self, call: ToolCall, admitted: AdmittedCall) -> Any:
        """Make a call that holds a slot, and release the slot."""
        contract, audit, made = admitted.contract, self._context.audit, None
        try:
            made = self._start(call, admitted)
            read = None if contract.labels is None else self.flow.note(contract)
            if audit is not None and (contract.tool.writes or read is not None or not 0 < call.size <= LARGE_VALUES):
                await self._record_start(audit, made, admitted, read)
            elif audit is not None:
                sent, given = admitted.sent, call.args
                frame = call.frame if len(given) == 1 and given[0] == sent else None
                audit.call_started(made.id, contract.tool.address, sent, made.step, frame)
            found = await self._result(contract, made, admitted.sent)
            value = await large_to_data(found, contract) if is_large(found) else to_data(found, contract.path)
            if self._closed:
                raise run_ended(contract.path)
            if audit is not None and call.frame is not None and not is_large(value):
                audit.call_replied(made.id, value)
            elif audit is not None:
                audit.call_ended(made.id, "ok", None, await off_loop(encoded, value) if is_large(value) else value)
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

    def _result(self, contract: Contract, made: MadeCall, sent: dict[str, Any]) -> Awaitable[Any]:
        run_snippet = self._context.run_snippet
        if run_snippet is not None and contract.tool.kind == "snippet":
            return run_snippet(self, made, sent)
        call_caller = self._context.call_caller
        if call_caller is not None and contract.tool.kind == CALLER_KIND:
            return call_caller(contract.tool, made.id, sent if contract.tool.takes == "object" else sent["args"])
        if contract.call_with_key is not None:
            return contract.call_with_key(contract.tool, sent, made.key(self._context.run))
        return contract.call(contract.tool, sent)

    def warn(self, warning: str) -> None:
        """Add a warning to the outcome of the run, once."""
        self._warnings[warning] = None

    def snippet_waits(self, made: MadeCall, waits: bool) -> None:
        """Note that the snippet that a call runs waits for a person, or goes on."""
        made.status = "waiting" if waits else "running"
        (self.approvals.begin_waiting if waits else self.approvals.end_waiting)()
        self._tell("call-waiting" if waits else "call-started", made)

    async def _record_start(
        self, audit: RunAudit, made: MadeCall, admitted: AdmittedCall, read: LabelledRead | None
    ) -> None:
        """Record that a call is made. Raise ToolError if it writes, or `read` is to be noted, and can't be recorded."""
        tool, sent = admitted.contract.tool, admitted.sent
        try:
            sent = await off_loop(encoded, sent) if is_large(sent) else sent
            if not tool.writes and read is None:
                audit.call_started(made.id, tool.address, sent, made.step)
                return
            changed = admitted.sent if made.approval is not None and made.approval.asked is not None else None
            await audit.call_started_now(
                made.id, tool.address, sent, writes=tool.writes, step=made.step, read=read, changed=changed
            )
        except StoreError as error:
            raise not_recorded(made.tool, error) from None
        if read is not None:
            self.flow.stored(read)

    def restore(self, history: RunHistory) -> None:
        """Take over the calls that the program made before the run was resumed, and the errors that it got."""
        self.flow.resume(history.began / 1e6)
        for past in history.calls:
            if past.is_sync or past.reply is None:
                continue
            contract = self.count_past(past)
            if past.reply[0] is not True:
                self.errors.add(error_in_reply(past))
            elif contract is None and past.call.name not in self._bridge.builtins.calls:
                self.flow.restore(past.call.name[:200], UNKNOWN_TOOL, past.started / 1e6)
            if contract is not None:
                self._past.append(past_record(past, contract, history.began))
                self.flow.restore(contract.tool.address, contract.labels, past.started / 1e6)

    def count_past(self, past: PastCall) -> Contract | None:
        """Count a call that the program, or a snippet of it, made before the run was resumed; return its contract."""
        self._calls_made += 1
        contract = self._bridge.contract(past.call.name[:MAX_NAME_CHARS])
        for budget in self._budgets_of(contract.tool) if contract is not None else ():
            self.budgets_used[str(budget)] += 1
        return contract

    async def call_again(self, past: PastCall) -> Any:
        """Return the result of a call that the program made before the run was resumed.

        A write that has left the host is not made again, unless a person says so: nobody knows whether it was made.
        """
        if not past.left:
            return await self.call(past.call)
        call, desk = past.call if past.sent is None else past.call._replace(args=[past.sent]), self._bridge.desk
        self.count_call()
        try:
            contract = await off_loop(self._look_up, call.name)
            sent, named = await off_loop_soon(contract.accept_slowly, call.args)
            admitted = await self._with_reads(AdmittedCall(contract, sent, named))
        except ToolError as problem:  # its tool is gone or has changed, and the write may have been made all the same
            raise self._refusal(outcome_unknown(call.name[:MAX_NAME_CHARS], problem.message), call.name) from None
        made = self._record(call, admitted)
        made.status = "waiting"
        self._tell("call-waiting", made)
        try:
            if desk is None or contract.tool.kind == CALLER_KIND:  # a caller that is gone can't be asked again
                raise outcome_unknown(contract.path)
            request = self._request_of(call, admitted)
            reads, why = admitted.reads, ask_whether_made(contract)
            answer, made.approval = await self.approvals.ask(desk, request, made, why, reads=reads, is_unknown=True)
            if not answer.approved:
                raise outcome_unknown(contract.path, answer.reason)
            if answer.happened:
                self._finish(made, None)
                return answer.value
            check_suspended(contract)
            if (decision := self._bridge.policy.decide(request)).verdict == "deny":
                raise denied_by_rules(contract.path, decision)
        except (ToolError, asyncio.CancelledError) as problem:
            self._finish(made, problem)
            raise self._refusal(problem, call.name) from None
        return await self._carry_out(call, admitted._replace(made=made))

    async def _admit(self, call: ToolCall, contract: Contract | None) -> AdmittedCall:
        """Count, look up, validate and decide on a call. Wait for a person where one is asked."""
        if self._closed:
            raise run_ended(call.name)
        self.count_call()
        if contract is None:
            slow = not self._bridge.finds_quickly(call.name[:MAX_NAME_CHARS])
            contract = await off_loop_if(slow, self._look_up, call.name)
        check_suspended(contract)
        # A private copy is sent: policy, records and listeners read the values that the guest sent (B3).
        if contract.accepts_quickly(call.size or (math.inf if is_large(call.args) else LARGE_BYTES)):
            sent, named = contract.accept(call.args), None
        else:
            sent, named = await off_loop_soon(contract.accept_slowly, call.args, shared=call.size > LARGE_BYTES)
        admitted = AdmittedCall(contract, sent, named)
        if contract.labels is not None:
            admitted = await self._with_reads(admitted)
        decision = self._settled(contract.tool)
        if decision is not None and decision.verdict == "allow" and not admitted.reads:
            return admitted
        return await self._govern(call, admitted, decision)

    async def _with_reads(self, admitted: AdmittedCall) -> AdmittedCall:
        """Return a call with the labelled reads because of which it asks. Raise ToolError if these can't be known."""
        contract = admitted.contract
        if contract.labels is None or not contract.may_send(admitted.sent):
            return admitted
        try:
            return admitted._replace(reads=await self.flow.reads_behind(contract.tool, contract.labels))
        except StoreError as error:
            raise not_recorded(contract.path, error) from None

    def _settled(self, tool: Tool) -> Decision | None:
        """Return the decision on every call of a tool; None where it depends on the arguments."""
        return self._bridge.policy.settled(tool, self._bridge.agent)

    def _budgets_of(self, tool: Tool) -> tuple[Budget, ...]:
        """Return the budgets that count the calls of a tool."""
        return self._bridge.policy.budgets_of(tool, self._bridge.agent)

    def count_call(self) -> None:
        """Count a call of the program, or of a snippet that it runs; raise CallLimit after too many."""
        self._calls_made += 1
        if self._calls_made > self._limits.max_calls:
            raise CallLimit(f"the program made more than {self._limits.max_calls:,} calls")

    def _refusal(self, problem: BaseException, name: str) -> BaseException:
        """Return what to raise for a call that was not made."""
        if isinstance(problem, ToolError):
            self.errors.add(problem)
            return problem
        return run_ended(name) if self._closed else problem

    def _error_for_run(self, problem: BaseException, contract: Contract) -> BaseException:
        """Return what to raise into the run: a ToolError for exceptions, and for a cancellation that nobody requested."""
        if isinstance(problem, CallLimit) and contract.tool.kind == "snippet":
            return problem
        if isinstance(problem, Exception):
            return to_tool_error(problem, contract.path, attributed=contract.errors_attributed)
        if not isinstance(problem, asyncio.CancelledError):
            return problem
        task = asyncio.current_task()
        if self._closed:
            return run_ended(contract.path)
        if task is None or not task.cancelling():
            return ToolError("CancelledError", tool=contract.path, origin="tool")
        return problem

    async def call_sync(self, name: str, args: list[Any]) -> Any:
        """Return the result of a built-in that the program waits for; raises ToolError, or CallLimit after too many."""
        return await self._questions.ask(name, args)

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

    async def _govern(self, call: ToolCall, admitted: AdmittedCall, decision: Decision | None) -> AdmittedCall:
        """Decide on a call by its arguments, and ask a person where the rules say so. Raise ToolError for a refusal."""
        contract, desk = admitted.contract, self._bridge.desk
        request = self._request_of(call, admitted)
        args = request.args or {}
        decision = self._bridge.policy.decide(request) if decision is None else decision
        if admitted.reads:
            decision = decision_after(admitted.reads, decision)
        if decision.verdict == "allow":
            return admitted
        made = self._record(call, admitted)
        try:
            if decision.verdict == "deny" or desk is None:
                if self._context.audit is not None:
                    self._context.audit.denied(call.id, contract.tool.address, recorded_arguments(args, call), decision)
                raise denied_by_rules(contract.path, decision)
            if call.size > MAX_ASKED_BYTES or is_large(args):
                raise too_large_to_ask(contract.path, MAX_ASKED_BYTES)
            made.status = "waiting"
            self._tell("call-waiting", made)
            answer, approval = await self.approvals.ask(desk, request, made, decision, reads=admitted.reads)
            made.approval = approval
            if not answer.approved:
                raise denied_by_person(contract.path, answer)
            if answer.args is not None:
                admitted = AdmittedCall(contract, contract.accept_named(answer.args), dict(answer.args))
                request = replace(request, args=answer.args)
                made.args, made.named = [dict(answer.args)], dict(answer.args)
            decision = self._bridge.policy.decide(request)  # the rules or the arguments may have changed meanwhile
            if decision.verdict == "deny":
                raise denied_by_rules(contract.path, decision)
        except (ToolError, asyncio.CancelledError) as problem:
            self._finish(made, problem)
            raise
        return admitted._replace(made=made)

    def _request_of(self, call: ToolCall, admitted: AdmittedCall) -> CallRequest:
        """Return a call as rules and people see it. They get a copy: listeners get the arguments of the record (B3)."""
        contract = admitted.contract
        args = contract.named_arguments(call.args) if admitted.named is None else admitted.named
        args = copy_data(args) if call.size <= MAX_ASKED_BYTES else args
        return CallRequest(contract.tool, args, self._bridge.agent, self._context.run)

    async def _take_budgets(self, budgets: tuple[Budget, ...], call: ToolCall, admitted: AdmittedCall) -> None:
        """Count a call in its budgets. Raise ToolError when one of them is used up."""
        try:
            used_up = await self._bridge.policy.counts.take(budgets, self._bridge.agent, self.budgets_used)
        except StoreError as error:
            used_up = error
        if used_up is not None:
            refusal = out_of_budget(admitted.contract.path, used_up)
            self.errors.add(refusal)
            self._finish(admitted.made or self._record(call, admitted), refusal)
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
                raise run_ended(contract.path) from None
            raise

    def _release_slot(self) -> None:
        while self._waiting_for_slot:
            turn = self._waiting_for_slot.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._slots_in_use -= 1

    def _start(self, asked: ToolCall, admitted: AdmittedCall) -> MadeCall:
        call = admitted.made
        if call is None:
            call = self._record(asked, admitted)
        elif self._closed:
            raise run_ended(call.tool)
        call.status = "running"
        self._tell("call-started", call)
        return call

    def _record(self, asked: ToolCall, admitted: AdmittedCall) -> MadeCall:
        contract, named = admitted.contract, admitted.named
        if self._closed:
            raise run_ended(contract.path)
        # A hostile program must not make the host keep everything it sent: 1000 calls of 16 MiB each.
        self._recorded_bytes += asked.size
        args = asked.args if self._recorded_bytes <= MAX_RECORDED_ARGUMENT_BYTES and asked.size <= LARGE_BYTES else None
        call = MadeCall(asked.id, contract, args, time.monotonic() - self._began, step=asked.step)
        call.named = named if args is not None else None
        self._calls.append(call)
        return call

    def _tell(self, kind: CallEvent, call: MadeCall) -> None:
        if self._on_call is not None:
            self._on_call(kind, call.record())
        self.approvals.call_happened()

    def _finish(self, call: MadeCall, error: BaseException | None, location: str = "") -> None:
        if self._closed or call.status not in ("waiting", "running"):
            return
        call.seconds = time.monotonic() - self._began - call.started
        if error is None:
            call.status = "ok"
        else:
            call.status = "failed"
            cancelled = not isinstance(error, ToolError)
            call.origin = "gloveport" if cancelled else error.origin
            call.setting = None if cancelled else error.setting
            said = "the call was cancelled" if cancelled else error.message
            call.error = f"{'cancelled' if cancelled else label(error.code, error.origin)}: {said}{location}"
            if self._context.audit is not None:
                self._context.audit.call_ended(call.id, "failed", call.error)
        self._tell("call-ended", call)
