"""What a call may do: whether it is allowed, with which credentials, to which addresses.

Policy            what the bridge asks about every call
rule_book.py      the rules of a port that are in force now, and what was used of their budgets
credentials/      secrets, and where they come from
redaction.py      removes echoed secrets from replies
egress/           the only HTTP client
"""

from __future__ import annotations

from typing import Protocol

from gloveport.rules.budgets import Budget, BudgetCounts
from gloveport.types import CallRequest, Decision, Tool

__all__ = ["Policy"]


class Policy(Protocol):
    """Decides whether a call may be made. The bridge asks it about every call: a changed rule applies to the next one."""

    counts: BudgetCounts

    def settled(self, tool: Tool, agent: str) -> Decision | None:
        """Return the decision on every call of a tool by an agent; None where it depends on the arguments."""
        ...

    def decide(self, request: CallRequest) -> Decision:
        """Return the decision on a call. Without `args`, return what holds for the tool whatever its arguments."""
        ...

    def budgets_of(self, tool: Tool, agent: str) -> tuple[Budget, ...]:
        """Return the budgets that count the calls of a tool by an agent."""
        ...
