"""Rules: which calls are allowed, asked about or denied, and why.

Among the rules that apply to a call, deny wins over ask, and ask over allow, whatever their order. Where none applies, the
preset decides. A rule whose condition is neither true nor false applies if it denies or asks, and does not if it allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Literal, NamedTuple

from gloveport.policy.conditions import Condition
from gloveport.types import CallRequest, Decision, Tool, Verdict

Preset = Literal["strict", "standard", "open"]
PRESETS: Mapping[Preset, str] = {
    "strict": "functions that don't write are allowed; every other call asks",
    "standard": "reads are allowed; writes, and tools that may write, ask",
    "open": "every call is allowed",
}
MAX_PLANS = 20_000
_ORDER: tuple[Verdict, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a pattern over tool addresses (`*` crosses dots), one over agents, and a condition on the arguments.

    `reason` is shown to agents and people. `place` is the file and line of the rule.
    """

    pattern: str
    verdict: Verdict
    agent: str = "*"
    when: Condition | None = None
    reason: str = ""
    place: str = ""

    def __str__(self) -> str:
        parts = [f"{self.pattern} = {self.verdict}"]
        parts += [f"for the agent {self.agent}"] if self.agent != "*" else []
        parts += [f"when {self.when.text}"] if self.when else []
        return " ".join(parts)


class RuleMatch(NamedTuple):
    """A rule whose patterns match a call, and whether its condition holds; None when it is neither true nor false."""

    rule: Rule
    holds: bool | None

    @property
    def applies(self) -> bool:
        """Whether the rule takes part in the decision."""
        return _applies(self.rule.verdict, self.holds)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision, the rule that decided (None for the preset), and all rules that match the call, the strictest first."""

    decision: Decision
    winner: Rule | None
    matches: tuple[RuleMatch, ...]
    preset: Preset


class Rules:
    """The rules of a port. They don't change: another set replaces them."""

    def __init__(self, rules: Iterable[Rule] = (), preset: Preset = "standard") -> None:
        self.rules = tuple(rules)
        self.preset: Preset = preset
        self._patterns = [(re.compile(translate(one.pattern)), re.compile(translate(one.agent)), one) for one in self.rules]
        self._decisions = {id(one): _decision(one) for one in self.rules}
        self._defaults: dict[tuple[bool, str], Decision] = {}
        self._plans: dict[tuple[str, str], tuple[Rule, ...]] = {}

    def decide(self, request: CallRequest) -> Decision:
        """Return the decision on a call. Without arguments, a rule with a condition counts as one that may apply."""
        tool = request.tool
        plan = self._plans.get((tool.address, request.agent))
        if plan is None:
            plan = self._plan(tool.address, request.agent)
        for rule in plan:
            if rule.when is None or _applies(rule.verdict, _holds(rule.when, request)):
                return self._decisions[id(rule)]
        return self._default(tool)

    def explain(self, request: CallRequest) -> Explanation:
        """Return the decision on a call with everything that led to it."""
        found = self._matching(request.tool.address, request.agent)
        matches = tuple(RuleMatch(rule, rule.when is None or _holds(rule.when, request)) for rule in found)
        winner = next((match.rule for match in matches if match.applies), None)
        decision = self._decisions[id(winner)] if winner else self._default(request.tool)
        return Explanation(decision, winner, matches, self.preset)

    def _plan(self, address: str, agent: str) -> tuple[Rule, ...]:
        """Return the rules that may decide on a tool: those that match it, up to the first without a condition."""
        plan: list[Rule] = []
        for rule in self._matching(address, agent):
            plan.append(rule)
            if rule.when is None:
                break
        if len(self._plans) < MAX_PLANS:
            self._plans[address, agent] = tuple(plan)
        return tuple(plan)

    def _matching(self, address: str, agent: str) -> list[Rule]:
        found = [rule for tools, agents, rule in self._patterns if tools.match(address) and agents.match(agent)]
        return sorted(found, key=lambda rule: _ORDER.index(rule.verdict))

    def _default(self, tool: Tool) -> Decision:
        key = tool.writes, tool.kind
        if key not in self._defaults:
            self._defaults[key] = _preset_decision(self.preset, tool)
        return self._defaults[key]


def _holds(condition: Condition, request: CallRequest) -> bool | None:
    return None if request.args is None else condition.holds(request.args)


def _applies(verdict: Verdict, holds: bool | None) -> bool:
    return verdict != "allow" if holds is None else holds


def _decision(rule: Rule) -> Decision:
    where = f"{rule.place} (`{rule}`)" if rule.place else f"the rule `{rule}`"
    return Decision(rule.verdict, rule.reason, setting=None if rule.verdict == "allow" else f"change {where}")


def _preset_decision(preset: Preset, tool: Tool) -> Decision:
    if preset == "open" or (not tool.writes and (preset == "standard" or tool.kind == "function")):
        return Decision("allow")
    does = "may write" if tool.kind == "mcp" else "writes"  # an MCP server that does not state it may do either
    reason = f"it {does}" if tool.writes else "every call asks here"
    return Decision("ask", reason, setting=f"add a rule for it; the preset `{preset}` asks")
