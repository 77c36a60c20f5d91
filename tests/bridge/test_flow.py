"""After private and untrusted reads, a call that sends data out asks, whatever the rules say (B15, B16)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.bridge.plans import ApprovedPlan, PlanDraft
from gloveport.catalog import Catalog
from gloveport.errors import ApprovalError, StoreError, ToolError
from gloveport.policy.flow import Flow
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.labels import LabelledRead, SourceLabels
from gloveport.rules.rule import Rule
from gloveport.rules.rules import Rules
from gloveport.sandbox.history import PastCall, RunHistory
from gloveport.types import Limits, Recording, Tool, ToolCall
from tests.bridge.support import DEADLINE, FakeSource, call, refused

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
HUB = [Tool("hub.file", "", SCHEMA, kind="mcp"), Tool("hub.comment", "", SCHEMA, kind="mcp", writes=True)]
SHOP = [Tool("shop.list", "", SCHEMA, kind="openapi"), Tool("shop.pay", "", SCHEMA, kind="openapi", writes=True)]
YES = Answer(True, "ada")


class World:
    """An MCP server with a credential, a public API, rules that allow everything, and a clock."""

    def __init__(self, *rules: Rule, desk: bool = True) -> None:
        self.now = 1_000_000.0
        self.flow = Flow(lambda: self.now)
        self.flow.open_sources({"hub": SourceLabels(has_credential=True)})
        self.hub, self.shop = FakeSource("hub", HUB, "secret"), FakeSource("shop", SHOP, "done")
        self.desk = ApprovalDesk() if desk else None
        self._rules = RuleBook(Rules((Rule("*", "allow"), *rules)))

    def run(self, name: str = "one", agent: str = "default", **context: Any) -> RunBridge:
        catalog = Catalog([self.hub, self.shop])
        bridge = Bridge(catalog, self._rules, self.desk, agent, flow=self.flow)
        return bridge.for_run(Limits(), RunContext(name, **context))

    async def asked(self, run: RunBridge, tool: str, *args: Any) -> tuple[asyncio.Task[Any], ApprovalRequest]:
        """Return the call, which waits, and what is asked."""
        assert self.desk is not None
        asks = asyncio.Event()
        unlisten = self.desk.listen(lambda what, request: asks.set())
        made = asyncio.ensure_future(call(run, tool, *args))
        async with asyncio.timeout(DEADLINE):
            await asks.wait()
        unlisten()
        return made, self.desk.waiting[-1]


async def test_an_allowed_write_asks_after_private_and_untrusted_reads_and_shows_them() -> None:
    world = World()
    run = world.run()
    assert await call(run, "hub.comment", {"text": "first"}) == "secret"  # nothing was read before
    made, request = await world.asked(run, "hub.comment", {"text": "secret"})
    assert [(one.tool, one.labels, one.at, one.run) for one in request.reads] == [
        ("hub.comment", ("private", "untrusted"), world.now, "one")
    ]
    assert request.rule == "flow labels"
    assert world.hub.sent == [{"text": "first"}]
    assert world.desk is not None
    world.desk.answer(request.id, request.digest, YES)
    assert await made == "secret"
    assert [one.approval and one.approval.approver for one in run.records] == [None, "ada"]


async def test_a_read_asks_at_another_source_only_and_only_if_it_carries_arguments() -> None:
    world = World()
    run = world.run()
    for _ in range(3):
        await call(run, "hub.file", {"text": "x"})
    await call(run, "shop.list", {})
    made, request = await world.asked(run, "shop.list", {"text": "secret"})
    made.cancel()
    assert (request.tool, world.shop.sent) == ("shop.list", [{}])


@pytest.mark.parametrize("scope", ["run", "always"])
async def test_no_approval_for_later_calls_covers_it(scope: Any) -> None:
    world = World(Rule("hub.comment", "ask"))
    assert world.desk is not None
    run = world.run()
    made, request = await world.asked(run, "hub.comment", {"text": "x"})
    assert request.reads == ()
    world.desk.answer(request.id, request.digest, Answer(True, "ada", scope))
    await made
    made, request = await world.asked(run, "hub.comment", {"text": "x"})  # the same shape
    with pytest.raises(ApprovalError, match="approved by itself"):
        world.desk.answer(request.id, request.digest, Answer(True, "ada", scope))
    world.desk.answer(request.id, request.digest, Answer(False, "ada"))
    with pytest.raises(ToolError, match="denied by ada"):
        await made


async def test_deny_still_denies_and_where_nobody_answers_it_is_denied_with_a_hint() -> None:
    world = World(Rule("hub.comment", "deny"), desk=False)
    run = world.run()
    await call(run, "hub.file", {})
    assert "is not allowed" in (await refused(run, "hub.comment", {})).message
    error = await refused(run, "shop.pay", {"text": "secret"})
    assert (error.code, world.shop.sent) == ("denied", [])
    assert "it could send out private data (of hub.file)" in error.message
    assert error.setting is not None
    assert "on_approval" in error.setting
    assert 'labels = ["not untrusted"]` under [sources.hub]' in error.setting


async def test_what_a_run_has_read_sticks_to_its_agent_for_an_hour() -> None:
    world = World(desk=False)
    await call(world.run("one"), "hub.file", {})
    world.now += 3500
    assert (await refused(world.run("two"), "shop.pay", {})).code == "denied"
    assert await call(world.run("two", agent="other"), "shop.pay", {}) == "done"
    long = world.run("three")
    world.now += 7200
    assert (await refused(long, "shop.pay", {})).code == "denied"  # it began within the hour
    assert await call(world.run("four"), "shop.pay", {}) == "done"


async def test_a_read_counts_before_its_reply_has_come_and_when_it_fails() -> None:
    world = World(desk=False)
    run, gate = world.run(), asyncio.Event()

    async def slow(tool: Tool, args: dict[str, Any]) -> Any:
        await gate.wait()
        raise ToolError("the text of an error")

    world.hub.call = slow  # type: ignore[method-assign]
    reading = asyncio.ensure_future(call(run, "hub.file", {}))
    await asyncio.sleep(0)
    assert (await refused(run, "shop.pay", {})).code == "denied"
    gate.set()
    with pytest.raises(ToolError):
        await reading
    assert (await refused(run, "shop.pay", {})).code == "denied"


async def test_a_resumed_run_has_read_what_its_record_says_also_of_a_tool_that_is_gone() -> None:
    for name in ("hub.file", "gone.file"):
        world = World(desk=False)
        history = RunHistory(Recording("one", "deno", 64, ()), began=0)
        history.calls.append(PastCall(ToolCall(1, name, [{}]), 5_000_000, reply=[True, "secret"], ended=6_000_000))
        run = world.run()
        run.restore(history)
        assert (await refused(run, "shop.pay", {})).code == "denied", name


async def test_what_other_hosts_have_noted_counts_and_where_it_cannot_be_read_nothing_leaves() -> None:
    world, elsewhere = World(desk=False), World()
    await call(elsewhere.run(), "hub.file", {})
    run = world.run()
    assert await call(run, "shop.pay", {}) == "done"
    world.flow.stored_reads = lambda agent, since: _stored(elsewhere, agent, since)
    world.now += 2
    assert (await refused(run, "shop.pay", {})).code == "denied"
    world.flow.stored_reads = _unreadable
    assert (await refused(world.run(), "shop.pay", {})).code == "store-unavailable"
    assert len(world.shop.sent) == 1


async def _stored(world: World, agent: str, since: float) -> list[LabelledRead]:
    return list((await world.flow.reads_of(agent, since)).values())


async def _unreadable(agent: str, since: float) -> list[LabelledRead]:
    raise StoreError("it is locked")


async def test_an_approved_plan_covers_its_calls_and_shows_the_reads_before_them() -> None:
    world = World()
    draft = PlanDraft("one", "default", 60)
    planning = world.run("one", plan=draft)
    await call(planning, "hub.file", {})
    await call(planning, "shop.pay", {"text": "5"})
    (write,) = draft.plan.writes
    assert write.after[0].startswith("hub.file (private, untrusted) at ")
    assert world.shop.sent == []
    following = world.run("two", plan=ApprovedPlan(replace(draft.plan), "ada"))
    await call(following, "hub.file", {})
    assert await call(following, "shop.pay", {"text": "5"}) == "done"
    made, request = await world.asked(following, "shop.pay", {"text": "6"})
    assert [one.tool for one in request.reads] == ["hub.file"]
    made.cancel()
