"""Rules: which calls are allowed, asked about or denied, and why.

Among the rules that apply to a call, deny wins over ask, and ask over allow, whatever their order. Where none applies, the
preset decides. A rule whose condition is neither true nor false applies if it denies or asks, and does not if it allows.
So does one whose condition depends on whether an argument that the call leaves out is null or has its default.

The rules over addresses, or the preset, decide on a request of `fetch`. The rules over tools can only tighten that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from gloveport.errors import OptionError, ToolError
from gloveport.rules.budgets import Budget
from gloveport.rules.conditions import Condition
from gloveport.rules.defaults import with_defaults
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.rules.source_writes import SourceWrites, opening_setting
from gloveport.suggestions import did_you_mean
from gloveport.types import CALLER_KIND, FETCH_KIND, CallRequest, Decision, Tool, Verdict
from gloveport.urls import Url, parse

Preset = Literal["strict", "standard", "open"]
PRESETS: Mapping[Preset, str] = {
    "strict": "functions that don't write are allowed; every other call asks; fetch is denied",
    "standard": "reads are allowed; writes, and tools that may write, ask; fetch is denied",
    "open": "every call is allowed; fetch reaches every public address",
}
MAX_PLANS = 20_000


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


class _Tested(NamedTuple):
    """The arguments that conditions test: as the call has them, and as whoever gets the call may understand them."""

    given: Mapping[str, Any] | None
    completed: Mapping[str, Any] | None

    @classmethod
    def of(cls, request: CallRequest) -> _Tested:
        args = request.args
        if args is None:
            return cls(None, None)
        if request.tool.takes == "anything" and isinstance(values := args.get("args"), list):
            # A function that takes one object ignores what follows it.
            return cls(args, {**(values[0] if values and isinstance(values[0], Mapping) else {}), **args})
        return cls(args, with_defaults(args, request.tool.input_schema))

    def holds(self, condition: Condition) -> bool | None:
        if self.given is None or self.completed is None:
            return None
        holds = condition.holds(self.given)
        return holds if self.completed is self.given or condition.holds(self.completed) is holds else None


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
        self._egress = tuple(one for one in self.rules if isinstance(one, EgressRule))
        self._over_tools = tuple(one for one in self.rules if not isinstance(one, EgressRule))
        self.preset: Preset = check_preset(preset)
        self.budgets = tuple({str(one): one for one in budgets}.values())  # one that two files state counts a call once
        self._patterns = [_Patterns.of(one) for one in self._over_tools]
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
        if request.tool.kind == FETCH_KIND:
            return self.explain(request).decision
        plan = self._plan(request.tool, request.agent)
        tested = _Tested.of(request)
        for rule in plan.rules:
            if rule.condition is None or _applies(rule.verdict, tested.holds(rule.condition)):
                return self._decisions[id(rule)]
        return plan.default

    def explain(self, request: CallRequest) -> Explanation:
        """Return the decision on a call with everything that led to it."""
        found = self._matching(request.tool.address, request.agent)
        if request.tool.kind == FETCH_KIND:
            return self._explain_fetch(request, [rule for rule in found if rule.verdict != "allow"])
        tested = _Tested.of(request)
        matches = tuple(RuleMatch(rule, rule.condition is None or tested.holds(rule.condition)) for rule in found)
        winner = next((match.rule for match in matches if match.applies), None)
        decision = self._decisions[id(winner)] if winner else self._default(request.tool)
        return Explanation(decision, winner, matches, self.preset)

    def reaches_private(self, url: Url, method: str, agent: str) -> bool:
        """Return whether a rule lets the requests of an agent reach a loopback or private address at this origin."""
        return any(one.allow_private and one.covers(url, method, agent) for one in self._egress)

    def _explain_fetch(self, request: CallRequest, tightening: list[Rule]) -> Explanation:
        """Return the decision on a request of `fetch`: of the rules over addresses, tightened by those over tools."""
        try:
            url, method = parse(str((request.args or {}).get("url"))), str((request.args or {}).get("method"))
        except ToolError as error:
            return Explanation(Decision("deny", error.message, rule="the form of its URL"), None, (), self.preset)
        found = sorted(
            (one for one in self._egress if one.covers(url, method, request.agent)),
            key=lambda rule: VERDICTS.index(rule.verdict),
        )
        default = self._fetch_default(url, method)
        decided = self._decisions[id(found[0])] if found else default
        # Servers read `%73ecret` as `secret`, so a condition has to hold for both.
        tested = _Tested(request.args, {**(request.args or {}), "url": unquote(str(url))})
        matches = tuple(RuleMatch(rule, rule.condition is None or tested.holds(rule.condition)) for rule in tightening)
        tighter = next((match.rule for match in matches if match.applies), None)
        winner = found[0] if found else None
        if tighter is not None and VERDICTS.index(tighter.verdict) < VERDICTS.index(decided.verdict):
            decided, winner = self._decisions[id(tighter)], tighter
        return Explanation(decided, winner, (*(RuleMatch(rule, True) for rule in found), *matches), self.preset)

    def _fetch_default(self, url: Url, method: str) -> Decision:
        if self.preset == "open":
            return Decision("allow")
        setting = f'add a rule to gloveport.toml: [[egress]] with allow = "{url.origin}" (or ask)'
        return Decision("deny", f"the user has not allowed {method} {url.origin}", setting, rule=f"preset {self.preset}")

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
        if tool.kind == FETCH_KIND:
            settled = None  # the address decides
        counted = zip(self._budget_patterns, self.budgets, strict=True)
        budgets = tuple(one for patterns, one in counted if patterns.cover(tool.address, agent))
        return _Plan(tuple(rules), default, settled, budgets)

    def _matching(self, address: str, agent: str) -> list[Rule]:
        stated = zip(self._patterns, self._over_tools, strict=True)
        found = [rule for patterns, rule in stated if patterns.cover(address, agent)]
        return sorted(found, key=lambda rule: VERDICTS.index(rule.verdict))

    def _default(self, tool: Tool) -> Decision:
        """Return the decision of the preset."""
        if self.preset == "standard" and tool.kind == CALLER_KIND:  # the caller makes the call itself
            return Decision("allow")
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


def _applies(verdict: Verdict, holds: bool | None) -> bool:
    return verdict != "allow" if holds is None else holds


def _decision(rule: Rule) -> Decision:
    shown = f"`{rule}` in {rule.place}" if rule.place else f"`{rule}`"
    setting = None if rule.verdict == "allow" else f"change the rule {shown}"
    return Decision(rule.verdict, rule.reason, setting, rule=shown)
