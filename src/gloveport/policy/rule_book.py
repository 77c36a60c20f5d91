"""The rules of a port that are in force now. Others can replace them while programs run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gloveport.rules.budgets import Budget, BudgetCounts
from gloveport.rules.rules import Explanation, Rules
from gloveport.rules.source_writes import SourceWrites
from gloveport.types import CallRequest, Decision, Tool


class RuleBook:
    """A policy by rules. `reload` returns other rules when the files that state them have changed, else None."""

    def __init__(self, rules: Rules | None = None, reload: Callable[[], Rules | None] | None = None) -> None:
        self._rules = rules or Rules()
        self._reload = reload
        self.counts = BudgetCounts()

    @property
    def rules(self) -> Rules:
        """The rules that are in force now."""
        self.refresh()
        return self._rules

    def refresh(self) -> None:
        """Read the files that state the rules again if they have changed."""
        if self._reload is not None and (changed := self._reload()):
            self._rules = self._with_sources(changed, self._rules.sources)

    def replace(self, rules: Rules) -> None:
        """Put other rules in force, from the next call on. What the sources open stays."""
        self._rules = self._with_sources(rules, self._rules.sources)

    def open_sources(self, sources: Mapping[str, SourceWrites]) -> None:
        """State what the settings of the sources open."""
        if sources != self._rules.sources:
            self._rules = self._with_sources(self._rules, sources)

    def settled(self, tool: Tool, agent: str) -> Decision | None:
        """Return the decision on every call of a tool by an agent; None where it depends on the arguments."""
        return self.rules.settled(tool, agent)

    def decide(self, request: CallRequest) -> Decision:
        """Return the decision on a call. Without `args`, return what holds for the tool whatever its arguments."""
        return self.rules.decide(request)

    def explain(self, request: CallRequest) -> Explanation:
        """Return the decision on a call with everything that led to it."""
        return self.rules.explain(request)

    def budgets_of(self, tool: Tool, agent: str) -> tuple[Budget, ...]:
        """Return the budgets that count the calls of a tool by an agent."""
        return self._rules.budgets_of(tool, agent)

    @staticmethod
    def _with_sources(rules: Rules, sources: Mapping[str, SourceWrites]) -> Rules:
        return Rules(rules.stated, rules.preset, rules.budgets, sources)
