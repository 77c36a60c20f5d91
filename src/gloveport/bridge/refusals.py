"""The errors of calls that are refused: by a rule, by a person, or because a budget is used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gloveport.approvals.request import Answer
from gloveport.errors import CODES, ApprovalError, StoreError, ToolError
from gloveport.rules.budgets import Budget
from gloveport.types import FETCH_TOOLS, Decision

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract

NOBODY_ANSWERS = "pass on_approval= to Gloveport to answer in code, or store= to answer with `gloveport approvals`"

FETCH_DENIED = "Ask the user whether it may be made, or call a tool instead (`tools.search` finds one)."


def denied_by_rules(path: str, decision: Decision) -> ToolError:
    """Return the error of a call that the rules deny, or that asks where nobody can answer."""
    reason = f": {decision.reason}" if decision.reason else ""
    setting = decision.setting
    if decision.verdict == "deny":
        message = f"`tools.{path}` is not allowed{reason}"
    else:
        message = f"`tools.{path}` needs a person's approval, which is not available here{reason}"
        setting = f"{NOBODY_ANSWERS}; or {setting}" if setting else NOBODY_ANSWERS
    hint = FETCH_DENIED if path in FETCH_TOOLS else CODES["denied"].fix
    return ToolError(message, code="denied", tool=path, hint=hint, setting=setting)


def denied_by_person(path: str, answer: Answer) -> ToolError:
    """Return the error of a call that a person has denied."""
    reason = f": {answer.reason}" if answer.reason else ""
    hint = "Don't make it again unless the user asks for it."
    return ToolError(f"`tools.{path}` was denied by {answer.approver}{reason}", code="denied", tool=path, hint=hint)


def not_answered(path: str, error: ApprovalError | StoreError) -> ToolError:
    """Return the error of a call about which nobody has answered, or can be asked."""
    if isinstance(error, StoreError):
        return not_recorded(path, error)
    hint = "Ask the user whether it may be made, and make it again."
    return ToolError(f"`tools.{path}` was not made: {error.message}", code="denied", tool=path, hint=hint)


def not_recorded(path: str, error: StoreError) -> ToolError:
    """Return the error of a call that can be neither asked about nor recorded.

    Where the store is and what is wrong with it is for the person who runs the program, not for the program (S3).
    """
    message = f"`tools.{path}` was not made, because it can't be recorded"
    if error.code == "run-taken-over":
        return ToolError(f"`tools.{path}` was not made: {error.message}", code=error.code, tool=path)
    setting = f"{error.message}; {error.hint}" if error.hint else error.message
    hint = "Ask the user to look at the store; reads go on."
    return ToolError(message, code="store-unavailable", tool=path, hint=hint, setting=setting)


def too_large_to_ask(path: str, limit: int) -> ToolError:
    """Return the error of a call whose arguments are too large to be shown to a person."""
    message = f"`tools.{path}` needs a person's approval, and its arguments have more than {limit // 1024} KiB"
    return ToolError(message, code="denied", tool=path, hint="Make several calls with less in each.")


def plan_is_full(path: str) -> ToolError:
    """Return the error of a write for which a plan has no room."""
    message = f"`tools.{path}` does not fit into the plan: it has too many writes for a person to approve"
    return ToolError(message, code="denied", tool=path, hint="Plan less at a time.")


def out_of_budget(path: str, budget: Budget | StoreError) -> ToolError:
    """Return the error of a call for which a budget has nothing left, or which can't be counted."""
    if isinstance(budget, StoreError):
        return not_recorded(path, budget)
    message = f"`tools.{path}` is not allowed: the budget for `{budget.pattern}` is used up"
    where = f" in {budget.place}" if budget.place else ""
    hint = "Make fewer calls, or ask the user for a larger budget."
    return ToolError(message, code="denied", tool=path, hint=hint, setting=f"raise `{budget}`{where}")


def outcome_unknown(path: str, reason: str = "") -> ToolError:
    """Return the error of a write that a host began and of which nobody knows whether it was made."""
    message = f"nobody knows whether `tools.{path}` was made" + (f": {reason}" if reason else "")
    return ToolError(message, code="outcome-unknown", tool=path, hint=CODES["outcome-unknown"].fix)


def ask_whether_made(contract: Contract) -> Decision:
    """Return the decision on a write that a host began and of which nobody knows whether it was made."""
    has_key = "; made again, it has the same idempotency key" if contract.call_with_key is not None else ""
    return Decision("ask", reason=f"the host ended during this call: nobody knows whether it was made{has_key}")


def run_ended(path: str) -> ToolError:
    """Return the error of a call whose run has ended."""
    return ToolError("the run has ended", code="cancelled", tool=path)


def check_suspended(contract: Contract) -> None:
    """Raise ToolError for a tool whose definition has changed, until a person has accepted it."""
    if contract.suspended is not None:
        setting = f"look at the change with `gloveport tools changes {contract.tool.source}` and accept it"
        raise ToolError(contract.suspended, code="tool-suspended", tool=contract.path, setting=setting)
