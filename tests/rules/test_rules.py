"""Rules: which of them decides, and how the decision is explained (B4, B5)."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.rules.budgets import Budget, BudgetCounts
from gloveport.rules.conditions import compile_condition
from gloveport.rules.rule import Rule
from gloveport.rules.rules import PRESETS, Preset, Rules
from gloveport.types import CallRequest, Tool, Verdict

STRICTNESS: tuple[Verdict, ...] = ("deny", "ask", "allow")


def request(
    address: str = "shop.orders.create", args: dict[str, Any] | None = None, *, agent: str = "default", **tool: Any
) -> CallRequest:
    made = Tool(address, "", {}, **{"kind": "openapi", "writes": True, **tool})
    return CallRequest(made, {} if args is None else args, agent)


def rule(pattern: str, verdict: Verdict, when: str | None = None, **options: Any) -> Rule:
    return Rule(pattern, verdict, when=compile_condition(when) if when else None, **options)


async def test_a_budget_that_two_files_state_counts_each_call_once_also_in_parallel() -> None:
    rules = Rules(budgets=[Budget("shop.*", calls_per_hour=4, place=place) for place in ("a.toml:1", "b.toml:7")])
    counts, tool = BudgetCounts(), request().tool
    taken = await asyncio.gather(*(counts.take(rules.budgets_of(tool, "x"), "x", Counter()) for _ in range(10)))
    assert taken.count(None) == 4


DEFAULTS = {
    "properties": {
        "currency": {"default": "EUR"},
        "body": {"anyOf": [{"$ref": "#/$defs/Body"}, {"type": "null"}]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Body"}},
    },
    "$defs": {"Body": {"properties": {"force": {"default": True}, "again": {"$ref": "#/$defs/Body"}}}},
}


@pytest.mark.parametrize(
    ("verdict", "when", "args", "applies"),
    [
        ("deny", 'args.currency == "EUR"', {}, True),
        ("deny", 'args.currency == "EUR"', {"currency": "USD"}, False),
        ("deny", 'args.currency == "USD"', {}, False),
        ("deny", "args.body.force", {"body": {}}, True),
        ("deny", "args.body.force", {"body": {"force": False}}, False),
        ("deny", "args.body.again.force", {"body": {"again": {}}}, True),
        ("deny", "args.items[1].force", {"items": [{"force": False}, {}]}, True),
        ("deny", "args.body.force", {}, False),
        ("allow", 'args.currency != "EUR"', {}, False),
        ("allow", 'args.currency != "EUR"', {"currency": "USD"}, True),
        ("allow", "not args.body.force", {"body": {}}, False),
    ],
)
def test_leaving_out_an_argument_that_has_a_default_leads_around_no_rule(
    verdict: Verdict, when: str, args: dict[str, Any], applies: bool
) -> None:
    call = CallRequest(Tool("shop.pay", "", DEFAULTS, writes=True), args)
    rules = Rules([rule("shop.pay", verdict, when)])
    decided = rules.decide(call)
    assert (decided.verdict == verdict) is applies
    assert rules.explain(call).decision == decided
    assert args == call.args


def test_a_value_behind_the_object_of_a_tool_without_schema_leads_around_no_rule() -> None:
    tool = Tool("caller.shell", "", {}, kind="caller", takes="anything")
    rules = Rules([rule("caller.shell", "deny", 'args.command == "rm"')])
    denied = {"command": "rm"}
    assert rules.decide(CallRequest(tool, denied)).verdict == "deny"
    assert rules.decide(CallRequest(tool, {"args": [denied, 1]})).verdict == "deny"
    assert rules.decide(CallRequest(tool, {"args": [{"command": "ls"}, 1]})).verdict == "allow"
    assert rules.decide(CallRequest(tool, {"args": ["ls"]})).verdict == "allow"


@pytest.mark.parametrize("order", list(itertools.permutations(STRICTNESS)))
def test_deny_wins_over_ask_and_ask_over_allow_in_any_order(order: tuple[Verdict, ...]) -> None:
    for count in range(1, 4):
        for verdicts in itertools.permutations(order, count):
            rules = Rules([rule("shop.*", verdict) for verdict in verdicts])
            assert rules.decide(request()).verdict == min(verdicts, key=STRICTNESS.index)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("shop.orders.create", True),
        ("shop.*", True),
        ("*", True),
        ("*.create", True),
        ("shop.*.create", True),
        ("shop.orders.creat?", True),
        ("shop.orders", False),
        ("Shop.*", False),
        ("shop.orders.create.x", False),
        ("hop.orders.create", False),
    ],
)
def test_a_pattern_covers_the_whole_address_and_its_star_crosses_dots(pattern: str, matches: bool) -> None:
    assert (Rules([rule(pattern, "deny")]).decide(request()).verdict == "deny") is matches


def test_a_rule_of_an_agent_applies_to_that_agent_alone() -> None:
    rules = Rules([rule("shop.*", "allow", agent="clerk"), rule("shop.*", "deny", agent="test-*")])
    assert rules.decide(request(agent="clerk")).verdict == "allow"
    assert rules.decide(request(agent="test-7")).verdict == "deny"
    assert rules.decide(request(agent="default")).verdict == "ask"


def test_conditions_decide_by_the_arguments() -> None:
    rules = Rules([rule("shop.*", "allow", "args.amount <= 100"), rule("shop.*", "deny", 'args.currency != "EUR"')])
    assert rules.decide(request(args={"amount": 50, "currency": "EUR"})).verdict == "allow"
    assert rules.decide(request(args={"amount": 500, "currency": "EUR"})).verdict == "ask"
    assert rules.decide(request(args={"amount": 50, "currency": "USD"})).verdict == "deny"
    assert rules.decide(request(args={"amount": 50})).verdict == "deny"


def test_what_a_condition_cannot_tell_is_decided_in_the_safe_direction() -> None:
    unclear = {"amount": "50"}
    assert Rules([rule("*", "allow", "args.amount <= 100")]).decide(request(args=unclear)).verdict == "ask"
    assert Rules([rule("*", "deny", "args.amount > 100")]).decide(request(args=unclear)).verdict == "deny"
    both = Rules([rule("*", "allow"), rule("*", "ask", "args.amount > 100")])
    assert both.decide(request(args=unclear)).verdict == "ask"


def test_without_arguments_a_condition_counts_as_one_that_may_apply() -> None:
    asked = CallRequest(request().tool)
    assert Rules([rule("*", "deny", "args.amount > 100")]).decide(asked).verdict == "deny"
    assert Rules([rule("*", "allow", "args.amount > 100")]).decide(asked).verdict == "ask"


@pytest.mark.parametrize(
    ("preset", "read", "write", "unknown", "function", "writing_function"),
    [
        ("strict", "ask", "ask", "ask", "allow", "ask"),
        ("standard", "allow", "ask", "ask", "allow", "ask"),
        ("open", "allow", "allow", "allow", "allow", "allow"),
    ],
)
def test_the_preset_decides_where_no_rule_applies(
    preset: Preset, read: Verdict, write: Verdict, unknown: Verdict, function: Verdict, writing_function: Verdict
) -> None:
    assert preset in PRESETS
    rules = Rules([rule("bank.*", "deny")], preset)
    assert rules.decide(request(writes=False)).verdict == read
    assert rules.decide(request()).verdict == write
    assert rules.decide(request(kind="mcp")).verdict == unknown
    assert rules.decide(request(writes=False, kind="function")).verdict == function
    assert rules.decide(request(kind="function")).verdict == writing_function


def test_an_explanation_lists_every_rule_that_matches_and_the_one_that_decided() -> None:
    first = rule("shop.*", "allow", place="gloveport.toml:3")
    second = rule("shop.orders.*", "ask", "args.amount > 100", reason="large orders", place="gloveport.toml:7")
    rules = Rules([first, second, rule("bank.*", "deny")])
    small, large = rules.explain(request(args={"amount": 5})), rules.explain(request(args={"amount": 500}))
    assert small.winner is first
    assert large.winner is second
    assert [(match.rule, match.applies) for match in small.matches] == [(second, False), (first, True)]
    assert large.decision.reason == "large orders"
    shown = "`ask = \"shop.orders.*\", when = 'args.amount > 100'` in gloveport.toml:7"
    assert (large.decision.rule, large.decision.setting) == (shown, f"change the rule {shown}")
    assert Rules().explain(request()).winner is None


RULES = st.lists(
    st.builds(
        rule,
        st.sampled_from(["*", "shop.*", "shop.orders.*", "*.create", "bank.*"]),
        st.sampled_from(STRICTNESS),
        st.sampled_from([None, "args.n > 1", "args.n == 2", "args.text > 1"]),
        agent=st.sampled_from(["*", "a*", "b"]),
    ),
    max_size=8,
)


@given(RULES, st.sampled_from(["a1", "b", "c"]), st.dictionaries(st.just("n"), st.integers(0, 3)))
def test_a_decision_is_the_strictest_of_the_rules_that_apply(rules: list[Rule], agent: str, args: dict[str, int]) -> None:
    asked = request(args=dict(args), agent=agent)
    found = Rules(rules).explain(asked)
    applying = [match.rule.verdict for match in found.matches if match.applies]
    assert found.decision == Rules(rules).decide(asked)
    assert found.decision.verdict == (min(applying, key=STRICTNESS.index) if applying else "ask")
    without = Rules([one for one in rules if one.verdict == "allow"]).decide(asked).verdict
    assert STRICTNESS.index(found.decision.verdict) <= STRICTNESS.index(without)
