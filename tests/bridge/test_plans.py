"""Runs in plan mode, and runs that follow an approved plan: nothing is written beyond what was planned (B7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.plan_shelf import plan_digest
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.bridge.made_up_value import MAX_NODES, MadeUpValues
from gloveport.bridge.plans import MAX_PLANNED_WRITES, ApprovedPlan, PlanDraft
from gloveport.catalog import Catalog
from gloveport.errors import ToolError
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.budgets import Budget
from gloveport.rules.rules import Rule, Rules
from gloveport.types import Limits, Plan, Tool, ToolCall
from tests.bridge.support import FakeSource, call, refused

ARGS = {"type": "object", "properties": {"n": {}, "to": {}}}
MADE = {"type": "object", "properties": {"id": {"type": "string"}, "number": {"type": "integer"}}}
CREATE = Tool("shop.create", "Create.", ARGS, MADE, kind="openapi", writes=True)
REMOVE = Tool("shop.remove", "Remove.", ARGS, kind="openapi", writes=True)
READ = Tool("shop.read", "Read.", ARGS, kind="openapi")
ALLOWED = Rule("*", "allow")


class Shop:
    """Runs over one shop. Nobody is asked: the desk refuses, and keeps what was asked."""

    def __init__(
        self, *rules: Rule, tools: tuple[Tool, ...] = (CREATE, REMOVE, READ), budget: Budget | None = None
    ) -> None:
        self.asked: list[ApprovalRequest] = []
        self.source = FakeSource("shop", tools, answer="done")
        self._desk = ApprovalDesk(self._refuse)
        self.book = RuleBook(Rules(list(rules), budgets=[budget] if budget else []))
        self.bridge = Bridge(Catalog([self.source]), self.book, self._desk)

    def _refuse(self, request: ApprovalRequest) -> Answer:
        self.asked.append(request)
        return Answer(False, "ada")

    def planning(self) -> tuple[RunBridge, PlanDraft]:
        draft = PlanDraft("planned", "default", 60)
        return self.bridge.for_run(Limits(), RunContext("planned", plan=draft)), draft

    def following(self, plan: Plan) -> RunBridge:
        return self.bridge.for_run(Limits(), RunContext("applied", plan=ApprovedPlan(plan, "ada")))

    async def plan(self, *calls: tuple[str, dict[str, Any]]) -> Plan:
        run, draft = self.planning()
        for number, (name, args) in enumerate(calls, 1):
            await call(run, name, args, id=number)
        return draft.plan


async def test_a_plan_makes_reads_and_holds_writes_back() -> None:
    shop = Shop(ALLOWED)
    run, draft = shop.planning()
    assert await call(run, "shop.read", {"n": 1}) == "done"
    made = await call(run, "shop.create", {"n": 2}, id=2)
    assert made == {"id": "made-up-2-id", "number": 900_000_002_002}
    assert shop.source.sent == [{"n": 1}]
    assert [record.status for record in run.records] == ["ok", "planned"]
    assert [(write.tool, write.args, write.call) for write in draft.plan.writes] == [("shop.create", {"n": 2}, 2)]
    assert not shop.asked


async def test_arguments_that_hold_a_made_up_value_are_marked() -> None:
    shop = Shop()
    run, draft = shop.planning()
    made = await call(run, "shop.create", {"n": 1})
    await call(run, "shop.remove", {"n": {"ids": ["x", made["id"]]}, "to": "ada"}, id=2)
    await call(run, "shop.remove", {"n": made["number"], "to": f"no. {made['number']} of {made['id']}"}, id=3)
    assert [write.unknown for write in draft.plan.writes] == [(), ("n.ids[1]",), ("n", "to")]
    assert draft.plan.notes == ("what tools.shop.remove returns: its definition does not say it",)


async def test_a_read_with_a_made_up_value_is_noted() -> None:
    shop = Shop()
    run, draft = shop.planning()
    made = await call(run, "shop.create", {})
    await call(run, "shop.read", {"n": made["id"]}, id=2)
    assert draft.plan.notes == ("what tools.shop.read returns: it was called with a made-up value",)


async def test_a_write_that_the_rules_deny_is_denied_in_the_plan_too() -> None:
    shop = Shop(Rule("shop.remove", "deny", reason="never"))
    run, draft = shop.planning()
    assert "never" in (await refused(run, "shop.remove", {})).message
    assert draft.plan.writes == ()


async def test_a_read_that_asks_still_asks_in_a_plan() -> None:
    shop = Shop(Rule("shop.read", "ask"))
    run, _ = shop.planning()
    assert (await refused(run, "shop.read", {})).code == "denied"
    assert [request.tool for request in shop.asked] == ["shop.read"]


async def test_a_plan_counts_no_budget_and_frees_its_slots() -> None:
    shop = Shop(budget=Budget("shop.*", calls_per_run=2))
    run, draft = shop.planning()
    for number in range(100):
        await call(run, "shop.create", {}, id=number + 1)
    assert len(draft.plan.writes) == 100


async def test_the_planned_calls_are_made_as_often_as_planned_and_any_other_asks() -> None:
    shop = Shop(ALLOWED)  # the rules would allow every write: the plan is narrower
    plan = await shop.plan(("shop.remove", {"n": 1}), ("shop.remove", {"n": 1}), ("shop.create", {"n": 2}))
    run = shop.following(plan)
    for name, args in (("shop.remove", {"n": 1}), ("shop.create", {"n": 2}), ("shop.remove", {"n": 1})):
        await call(run, name, args)
    assert not shop.asked
    for name, args in (("shop.remove", {"n": 1}), ("shop.remove", {"n": 2}), ("shop.create", {"n": 2, "to": "eve"})):
        assert (await refused(run, name, args)).code == "denied"
    assert [request.reason for request in shop.asked] == ["the approved plan has no such call"] * 3
    assert len(shop.source.sent) == 3
    assert [record.approval and record.approval.scope for record in run.records[:3]] == ["plan"] * 3


async def test_the_rules_of_the_moment_hold_for_a_planned_call() -> None:
    shop = Shop()
    plan = await shop.plan(("shop.remove", {"n": 1}))
    shop.book.replace(Rules([Rule("shop.remove", "deny")]))
    assert (await refused(shop.following(plan), "shop.remove", {"n": 1})).code == "denied"
    assert shop.source.sent == []


async def test_a_planned_call_of_a_changed_definition_asks() -> None:
    plan = await Shop().plan(("shop.remove", {"n": 1}))
    changed = Shop(tools=(replace(REMOVE, description="Remove everything."),))
    assert (await refused(changed.following(plan), "shop.remove", {"n": 1})).code == "denied"
    assert len(changed.asked) == 1


async def test_a_reading_run_that_follows_a_plan_is_as_usual() -> None:
    shop = Shop()
    assert await call(shop.following(await shop.plan()), "shop.read", {}) == "done"


async def test_a_plan_is_bounded() -> None:
    shop = Shop()
    draft = PlanDraft("planned", "default", 60)
    run = shop.bridge.for_run(Limits(max_calls=10_000), RunContext("planned", plan=draft))
    for number in range(MAX_PLANNED_WRITES):
        await run.call(ToolCall(number, "shop.create", [{}], 10))
    with pytest.raises(ToolError, match="does not fit into the plan"):
        await run.call(ToolCall(5000, "shop.create", [{}], 10))
    with pytest.raises(ToolError, match="more than 256 KiB"):
        await run.call(ToolCall(5001, "shop.create", [{}], 300_000))
    assert len(draft.plan.writes) == MAX_PLANNED_WRITES


async def test_the_digest_of_a_plan_changes_with_everything_that_is_approved() -> None:
    plan = await Shop().plan(("shop.remove", {"n": 1}))
    (write,) = plan.writes
    others = [
        replace(plan, run="another"),
        replace(plan, agent="another"),
        replace(plan, expires=plan.expires + 1),
        replace(plan, writes=(write, write)),
        replace(plan, writes=()),
        *(replace(plan, writes=(replace(write, **{field: value}),)) for field, value in
          (("tool", "shop.create"), ("args", {"n": 2}), ("definition", ""))),
    ]  # fmt: skip
    assert len({plan_digest(one) for one in (plan, *others)}) == len(others) + 1


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (None, "made-up-1-result"),
        ({"type": "boolean"}, True),
        ({"type": ["null", "string"]}, "made-up-1-result"),
        ({"enum": ["open", "closed"]}, "open"),
        ({"const": 3}, 3),
        ({"type": "integer", "minimum": 1, "maximum": 10}, 1),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, True),
        ({"type": "string", "format": "uri"}, "https://example.invalid/made-up-1-1"),
        (
            {"$ref": "#/$defs/it", "$defs": {"it": {"type": "object", "properties": {"on": {"type": "boolean"}}}}},
            {"on": True},
        ),
        ({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}, {"a": 1, "b": 2}),
        ({"$ref": "#/$defs/it", "$defs": {"it": {"$ref": "#/$defs/it"}}}, "made-up-1-result"),
        ({"$ref": "https://elsewhere.example/x"}, "made-up-1-result"),
        ({"type": "object", "properties": 3, "anyOf": 5, "allOf": "x"}, {}),
    ],
)
def test_a_made_up_value_follows_the_schema(schema: Any, value: Any) -> None:
    assert MadeUpValues().make(schema, 1)[0] == value


def test_a_hostile_schema_gives_a_small_value() -> None:
    wide = {"type": "object", "properties": {f"p{at}": {"$ref": "#/$defs/deep"} for at in range(10_000)}}
    deep: dict[str, Any] = {"type": "object", "properties": {f"q{at}": {"$ref": "#/$defs/deep"} for at in range(50)}}
    value, _ = MadeUpValues().make({**wide, "$defs": {"deep": deep}}, 1)
    assert str(value).count(":") <= MAX_NODES


def test_made_up_values_of_an_earlier_attempt_are_recognised() -> None:
    first = MadeUpValues()
    formats = ("uuid", "date-time", "email", "uri")
    schema = {"properties": {name: {"type": "string", "format": name} for name in formats} | MADE["properties"]}
    made, _ = first.make(schema, 3)
    later = MadeUpValues()
    later.note(made)
    assert later.found_in(made) == first.found_in(made) == (*formats, "id", "number")
    assert MadeUpValues().found_in(made) == ()
