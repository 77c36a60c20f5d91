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

from gloveport.errors import OptionError
from gloveport.rules.budgets import Budget
from gloveport.rules.conditions import Condition, ConditionError, compile_condition
from gloveport.rules.source_writes import SourceWrites, opening_setting
from gloveport.suggestions import did_you_mean
from gloveport.types import CallRequest, Decision, Tool, Verdict

Preset = Literal["strict", "standard", "open"]
PRESETS: Mapping[Preset, str] = {
    "strict": "functions that don't write are allowed; every other call asks",
    "standard": "reads are allowed; writes, and tools that may write, ask",
    "open": "every call is allowed",
}
VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
"""The strictest first."""
MAX_PLANS = 20_000


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a pattern over tool addresses (`*` crosses dots), one over agents, and a condition on the arguments.

    `reason` is shown to agents and people. `place` is the file and line of the rule. `when` may be given as text.
    """

    pattern: str
    verdict: Verdict
    agent: str = "*"
    when: Condition | str | None = None
    reason: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise OptionError(f"a rule is one of {', '.join(reversed(VERDICTS))}, not {self.verdict!r:.40}")
        if isinstance(self.when, str):
            try:
                object.__setattr__(self, "when", compile_condition(self.when))
            except ConditionError as error:
                message = f"the condition of the rule for {self.pattern} is wrong at column {error.column}: {error.message}"
                raise OptionError(message, hint=error.hint) from None

    @property
    def condition(self) -> Condition | None:
        """The compiled condition."""
        return self.when if isinstance(self.when, Condition) else None

    def __str__(self) -> str:
        parts = [f'{self.verdict} = "{self.pattern}"']
        parts += [f'agent = "{self.agent}"'] if self.agent != "*" else []
        parts += [f"when = '{self.condition.text}'"] if self.condition else []
        return ", ".join(parts)


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


class _Patterns(NamedTuple):
    """The compiled patterns of a rule or a budget."""

    tools: re.Pattern[str]
    agents: re.Pattern[str]

    @classmethod
    def of(cls, one: Rule | Budget) -> _Patterns:
        return cls(re.compile(translate(one.pattern)), re.compile(translate(one.agent)))

    def cover(self, address: str, agent: str) -> bool:
        return bool(self.tools.match(address) and self.agents.match(agent))


class _Plan(NamedTuple):
    """The rules that may decide on a tool, up to the first without a condition; `settled` if the arguments don't matter."""

    rules: tuple[Rule, ...]
    default: Decision
    settled: Decision | None
    budgets: tuple[Budget, ...]


class Rules:
    """The rules of a port. They don't change: another set replaces them.

    `sources` is what the settings of the sources open, by name: their rules that allow are part of this set.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        preset: Preset = "standard",
        budgets: Iterable[Budget] = (),
        sources: Mapping[str, SourceWrites] | None = None,
    ) -> None:
        self.sources = sources or {}
        opened = (
            Rule(pattern, "allow", place=writes.place)
            for name, writes in self.sources.items()
            for pattern in writes.addresses(name)
        )
        self.stated = tuple(rules)
        self.rules = (*self.stated, *opened)
        self.preset: Preset = check_preset(preset)
        self.budgets = tuple(budgets)
        self._patterns = [_Patterns.of(one) for one in self.rules]
        self._budget_patterns = [_Patterns.of(one) for one in self.budgets]
        self._decisions = {id(one): _decision(one) for one in self.rules}
        # By what the plan depends on: after a change of its definition, a tool of the same address may write.
        self._plans: dict[tuple[str, bool, str, str], _Plan] = {}

    def settled(self, tool: Tool, agent: str) -> Decision | None:
        """Return the decision on every call of a tool by an agent; None where it depends on the arguments."""
        return self._plan(tool, agent).settled

    def budgets_of(self, tool: Tool, agent: str) -> tuple[Budget, ...]:
        """Return the budgets that count the calls of a tool by an agent."""
        return self._plan(tool, agent).budgets

    def decide(self, request: CallRequest) -> Decision:
        """Return the decision on a call. Without arguments, a rule with a condition counts as one that may apply."""
        plan = self._plan(request.tool, request.agent)
        for rule in plan.rules:
            if rule.condition is None or _applies(rule.verdict, _holds(rule.condition, request)):
                return self._decisions[id(rule)]
        return plan.default

    def explain(self, request: CallRequest) -> Explanation:
        """Return the decision on a call with everything that led to it."""
        found = self._matching(request.tool.address, request.agent)
        matches = tuple(RuleMatch(rule, rule.condition is None or _holds(rule.condition, request)) for rule in found)
        winner = next((match.rule for match in matches if match.applies), None)
        decision = self._decisions[id(winner)] if winner else self._default(request.tool)
        return Explanation(decision, winner, matches, self.preset)

    def _plan(self, tool: Tool, agent: str) -> _Plan:
        key = tool.address, tool.writes, tool.kind, agent
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make_plan(tool, agent)
            if len(self._plans) < MAX_PLANS:
                self._plans[key] = plan
        return plan

    def _make_plan(self, tool: Tool, agent: str) -> _Plan:
        rules: list[Rule] = []
        for rule in self._matching(tool.address, agent):
            rules.append(rule)
            if rule.condition is None:
                break
        default = self._default(tool)
        settled = default if not rules else self._decisions[id(rules[0])] if rules[0].condition is None else None
        counted = zip(self._budget_patterns, self.budgets, strict=True)
        budgets = tuple(one for patterns, one in counted if patterns.cover(tool.address, agent))
        return _Plan(tuple(rules), default, settled, budgets)

    def _matching(self, address: str, agent: str) -> list[Rule]:
        found = [rule for patterns, rule in zip(self._patterns, self.rules, strict=True) if patterns.cover(address, agent)]
        return sorted(found, key=lambda rule: VERDICTS.index(rule.verdict))

    def _default(self, tool: Tool) -> Decision:
        """Return the decision of the preset."""
        if self.preset == "open" or (not tool.writes and (self.preset == "standard" or tool.kind == "function")):
            return Decision("allow")
        does = "may write" if tool.kind == "mcp" else "writes"  # an MCP server that does not state it may do either
        reason = f"it {does}" if tool.writes else "every call asks here"
        source = self.sources.get(tool.source)
        if source is not None and source.denied and tool.writes:
            setting = f'change `writes = "deny"` under [sources.{tool.source}]{source.shown_place}'
            return Decision("deny", f"it {does}, and writes of {tool.source} are denied", setting, rule='writes = "deny"')
        if source is None or not tool.writes:
            setting = f'add a rule: `gloveport policy set allow "{tool.address}"`'
        else:
            setting = opening_setting(tool, source)
        return Decision("ask", reason, setting, rule=f"preset {self.preset}")


def check_preset(preset: str) -> Preset:
    """Return the name of a preset; raise OptionError for any other."""
    for name in PRESETS:
        if name == preset:
            return name
    meant = did_you_mean(str(preset), tuple(PRESETS))
    message = f"there is no preset {preset!r:.40}{f'; {meant}' if meant else ''}"
    raise OptionError(message, hint=f"the presets are {', '.join(PRESETS)}")


def _holds(condition: Condition, request: CallRequest) -> bool | None:
    return None if request.args is None else condition.holds(request.args)


def _applies(verdict: Verdict, holds: bool | None) -> bool:
    return verdict != "allow" if holds is None else holds


def _decision(rule: Rule) -> Decision:
    shown = f"`{rule}` in {rule.place}" if rule.place else f"`{rule}`"
    setting = None if rule.verdict == "allow" else f"change the rule {shown}"
    return Decision(rule.verdict, rule.reason, setting, rule=shown)
