"""Plans of runs: the draft that a run in plan mode makes, and the approved plan that a run follows.

A run in plan mode holds its writes back. A run that follows a plan makes the writes that the plan has, each as often as it
is there: same tool, same definition, same arguments. Any other write asks a person, whatever the rules allow. What the
rules deny is denied in both. A plan shows the labelled reads before a write; its approval covers that write.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gloveport.approvals.plan_shelf import plan_digest, write_digest
from gloveport.approvals.request import EXPIRY_MARGIN_SECONDS, call_digest
from gloveport.bridge.made_call import AdmittedCall
from gloveport.bridge.made_up_value import MadeUpValues
from gloveport.bridge.refusals import plan_is_full, too_large_to_ask
from gloveport.bridge.run_bridge import MAX_ASKED_BYTES, RunBridge
from gloveport.catalog.fingerprint import fingerprint
from gloveport.large_values import is_large, off_loop
from gloveport.types import CallApproval, Decision, Plan, PlannedWrite, Tool, ToolCall

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.rules.budgets import Budget
    from gloveport.sandbox.history import RunHistory

MAX_PLANNED_WRITES = 1000
MAX_PLAN_BYTES = 4 * 1024 * 1024
MAX_NOTES = 20


class PlanDraft:
    """The plan that a run makes."""

    def __init__(self, run: str, agent: str, expiry_seconds: float) -> None:
        self._run = run
        self._agent = agent
        self._expires = time.time() + expiry_seconds
        self._writes: list[PlannedWrite] = []
        self._notes: dict[str, None] = {}
        self._bytes = 0
        self.made_up = MadeUpValues()

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return Plan(self._run, self._agent, tuple(self._writes), self._expires, tuple(self._notes)[:MAX_NOTES])

    def has_room(self, size: int) -> bool:
        """Return whether a write with so many bytes of arguments fits."""
        return len(self._writes) < MAX_PLANNED_WRITES and self._bytes + size <= MAX_PLAN_BYTES

    def add(
        self, call: int, tool: Tool, args: dict[str, Any], line: int | None, size: int, *, after: tuple[str, ...] = ()
    ) -> Any:
        """Add a write, and return the result that the program gets. Do this in a thread: schemas may be large."""
        self.keep(call, tool, args, line, size, after=after)
        value, is_stated = self.made_up.make(tool.output_schema, call)
        if not is_stated:
            self.note(f"what tools.{tool.address} returns: its definition does not say it")
        return value

    def keep(
        self, call: int, tool: Tool, args: dict[str, Any], line: int | None, size: int, *, after: tuple[str, ...] = ()
    ) -> None:
        """Add a write whose result the program has already."""
        self._bytes += size
        unknown = self.made_up.found_in(args)
        self._writes.append(PlannedWrite(call, tool.address, args, fingerprint(tool), line, unknown, after))

    def note(self, text: str) -> None:
        """Add something that could not be known."""
        if len(self._notes) < MAX_NOTES:
            self._notes[text] = None


class ApprovedPlan:
    """A plan that a person has approved, for one run: what is left of it."""

    def __init__(self, plan: Plan, approver: str) -> None:
        self.plan = plan
        self.approver = approver
        self.digest = plan_digest(plan)
        self._left = Counter(write_digest(write) for write in plan.writes)

    def take(self, tool: Tool, args: dict[str, Any]) -> bool:
        """Use the approval of one call up; return False if the plan has no such call, or none any more, or has expired."""
        if time.time() >= self.plan.expires + EXPIRY_MARGIN_SECONDS:
            return False
        digest = call_digest(tool.address, args, fingerprint(tool))
        if self._left[digest] <= 0:
            return False
        self._left[digest] -= 1
        return True


class PlanningBridge(RunBridge):
    """The bridge of a run in plan mode: reads are made, writes are held back."""

    def _draft(self) -> PlanDraft:
        draft = self._context.plan
        assert isinstance(draft, PlanDraft)
        return draft

    def _settled(self, tool: Tool) -> Decision | None:
        return None if tool.writes else super()._settled(tool)

    def _budgets_of(self, tool: Tool) -> tuple[Budget, ...]:
        return () if tool.writes else super()._budgets_of(tool)

    async def _govern(self, call: ToolCall, admitted: AdmittedCall, decision: Decision | None) -> AdmittedCall:
        """Deny a write that the rules deny, and let every other one through to where it is held back."""
        if not admitted.contract.tool.writes:
            return await super()._govern(call, admitted, decision)
        decision = self._bridge.policy.decide(self._request_of(call, admitted))
        return await super()._govern(call, admitted, decision) if decision.verdict == "deny" else admitted

    async def _make(self, call: ToolCall, admitted: AdmittedCall) -> Any:
        contract, draft = admitted.contract, self._draft()
        if not contract.tool.writes:
            if draft.made_up.found_in(admitted.sent if not is_large(admitted.sent) else {}):
                draft.note(f"what tools.{contract.path} returns: it was called with a made-up value")
            return await super()._make(call, admitted)
        try:
            return await self._hold_back(call, admitted)
        finally:
            self._release_slot()

    async def _hold_back(self, call: ToolCall, admitted: AdmittedCall) -> Any:
        contract, draft = admitted.contract, self._draft()
        args = self._request_of(call, admitted).args or {}
        made = self._record(call, admitted)
        if call.size > MAX_ASKED_BYTES or is_large(args):
            problem = too_large_to_ask(contract.path, MAX_ASKED_BYTES)
        elif not draft.has_room(call.size):
            problem = plan_is_full(contract.path)
        else:
            line, after = self._context.line_of(contract.path), tuple(map(str, admitted.reads))
            add = partial(draft.add, call.id, contract.tool, dict(args), line, call.size, after=after)
            value = await off_loop(add)
            if self._context.audit is not None:
                self._context.audit.planned(call.id, contract.tool.address, args)
            made.status, made.seconds = "planned", 0.0
            self._tell("call-ended", made)
            return value
        self.errors.add(problem)
        self._finish(made, problem)
        raise problem

    def restore(self, history: RunHistory) -> None:
        """Take over the writes that were held back before the run was resumed."""
        super().restore(history)
        draft, planned = self._draft(), set[int]()
        for past in history.calls:
            contract = None if past.is_sync else self._bridge.contract(past.call.name)
            if contract is None or not contract.tool.writes or past.reply is None or past.reply[0] is not True:
                continue
            line, args = self._context.line_of(contract.path), contract.named_arguments(past.call.args)
            draft.keep(past.call.id, contract.tool, args, line, past.call.size)
            draft.made_up.note(past.reply[1])
            planned.add(past.call.id)
        self._past = [replace(one, status="planned") if one.id in planned else one for one in self._past]


class FollowingBridge(RunBridge):
    """The bridge of a run that follows an approved plan."""

    def _approved(self) -> ApprovedPlan:
        approved = self._context.plan
        assert isinstance(approved, ApprovedPlan)
        return approved

    def _settled(self, tool: Tool) -> Decision | None:
        return None if tool.writes else super()._settled(tool)

    async def _govern(self, call: ToolCall, admitted: AdmittedCall, decision: Decision | None) -> AdmittedCall:
        contract, approved = admitted.contract, self._approved()
        if not contract.tool.writes:
            return await super()._govern(call, admitted, decision)
        request = self._request_of(call, admitted)
        decision = self._bridge.policy.decide(request)
        if decision.verdict == "deny":
            return await super()._govern(call, admitted, decision)
        args = dict(request.args or {})
        if call.size > MAX_ASKED_BYTES or not await off_loop(approved.take, contract.tool, args):
            reason = "the approved plan has no such call"
            return await super()._govern(call, admitted, Decision("ask", reason, decision.setting, decision.rule))
        made = self._record(call, admitted)
        made.approval = CallApproval(approved.approver, 0.0, "plan")
        if self._context.audit is not None:
            self._context.audit.asked(call.id, contract.tool.address, args, approved.digest)
            given = {"approved": True, "approver": approved.approver, "scope": "plan", "reason": ""}
            self._context.audit.answered(call.id, approved.digest, given)
        return admitted._replace(made=made)

    def restore(self, history: RunHistory) -> None:
        """Use up what the run has done of the plan before it was resumed."""
        super().restore(history)
        for past in history.calls:
            contract: Contract | None = None if past.is_sync else self._bridge.contract(past.call.name)
            if contract is not None and contract.tool.writes and (past.left or past.reply is not None):
                self._approved().take(contract.tool, contract.named_arguments(past.call.args))
