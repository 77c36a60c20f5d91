"""Plans end to end: made, approved by a person, followed once; a hostile program gets nothing beyond its plan (B7)."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, OptionError, Rule, Rules
from gloveport.errors import ApprovalError
from gloveport.surfaces.agents.tools import AgentTools
from tests.durable.test_resume import answer, paying, run_host
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration

CODE = "const at = await tools.look(); return [await tools.pay({n: at}), await tools.pay({n: 2}), Math.random()]"


def look() -> int:
    """Look."""
    return 1


def opened(made: list[Any], store: Path | None, **options: Any) -> Gloveport:
    options = {"rules": [Rule("*", "allow")], **options}
    return Gloveport(tools=[paying(made), look], store=store, spare=1, **options)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_plan_writes_nothing_and_is_followed_once(store: Path, stored: bool) -> None:
    made: list[Any] = []
    async with opened(made, store if stored else None) as port:
        planned = await port.run(CODE, mode="plan")
        assert (planned.status, made) == ("completed", [])
        assert planned.plan is not None
        assert [(write.tool, write.args) for write in planned.plan.writes] == [
            ("local.pay", {"n": 1}),
            ("local.pay", {"n": 2}),
        ]
        outcome = await port.apply(planned.plan, approver="ada")
        assert made == [1, 2]
        assert outcome.value == [1, 2, planned.value[2]]  # the same random numbers, so that planned arguments are the same
        assert [call.approval and call.approval.approver for call in outcome.calls] == [None, "ada", "ada"]
        with pytest.raises(ApprovalError, match="was used"):
            await port.apply(planned.plan)
        assert made == [1, 2]


async def test_a_program_that_knows_that_it_is_planned_gets_nothing_beyond_the_plan(store: Path) -> None:
    made: list[Any] = []
    code = """
    const first = await tools.pay({n: 1});
    if (first > 1000) return "planned";
    return await tools.pay({n: 666}).catch((e) => e.code)"""
    denied: list[Any] = []
    async with opened(made, store, on_approval=lambda request: denied.append(request.args) or False) as port:
        planned = await port.run(code, mode="plan")
        assert planned.value == "planned"
        assert planned.plan is not None
        outcome = await port.apply(planned.plan)
    assert (outcome.value, made, denied) == ("denied", [1], [{"n": 666}])


async def test_a_plan_that_was_changed_expired_or_made_up_is_refused(store: Path) -> None:
    made: list[Any] = []
    async with opened(made, store) as port:
        plan = (await port.run(CODE, mode="plan")).plan
        assert plan is not None
        (first, second) = plan.writes
        forged = [
            replace(plan, writes=(first, replace(second, args={"n": 666}))),
            replace(plan, writes=(first, second, second)),
            replace(plan, agent="another"),
            replace(plan, expires=plan.expires + 1),
        ]
        for one in forged:
            with pytest.raises(ApprovalError, match="another than was shown"):
                await port.apply(one)
        with pytest.raises(OptionError, match="there is no run"):
            await port.apply(replace(plan, run="0" * 32))
        connection = sqlite3.connect(store)
        connection.execute("UPDATE plans SET expires = 0")
        connection.commit()
        connection.close()
        with pytest.raises(ApprovalError, match="has expired"):
            await port.apply(plan)
    assert made == []


async def test_a_plan_that_was_changed_in_the_store_is_not_shown(store: Path) -> None:
    async with opened([], store) as port:
        planned = await port.run(CODE, mode="plan")
        connection = sqlite3.connect(store)
        connection.execute("UPDATE plans SET plan = replace(CAST(plan AS TEXT), '\\\"n\\\":2', '\\\"n\\\":9')")
        connection.commit()
        connection.close()
        with pytest.raises(ApprovalError, match="was changed since"):
            await port.resume(planned.run)


async def test_two_approvals_at_the_same_moment_are_followed_once(store: Path) -> None:
    made: list[Any] = []
    async with opened(made, store) as one, opened(made, store) as other:
        plan = (await one.run(CODE, mode="plan")).plan
        assert plan is not None
        found = await asyncio.gather(one.apply(plan), other.apply(plan), return_exceptions=True)
    assert made == [1, 2]
    assert sorted(type(each).__name__ for each in found) == ["ApprovalError", "Outcome"]


async def test_an_agent_plans_a_person_approves_and_the_agent_gets_the_outcome(store: Path) -> None:
    made: list[Any] = []
    async with opened(made, store) as port:
        agent = AgentTools(port)
        answer = await agent.call("execute", {"code": CODE, "plan": True})
        assert "2 writes were held back" in answer.text
        assert "gloveport runs apply" in answer.text
        assert answer.data["plan"]["total"] == 2
        run = answer.data["run"]
        again = await agent.call("resume", {"run": run})  # asking again approves nothing
        assert (again.data["plan"]["total"], made) == (2, [])
        planned = await port.resume(run)
        assert planned.plan is not None
        async with opened(made, store) as elsewhere:
            applied = await elsewhere.apply(planned.plan, approver="ada")
        assert made == [1, 2]
        last = await agent.call("resume", {"run": run})
        assert (last.data["run"], last.data["value"][:2]) == (applied.run, [1, 2])


async def test_a_planned_run_that_waited_in_the_store_keeps_its_plan(store: Path) -> None:
    made: list[Any] = []
    code = "const a = await tools.pay({n: 1}); await tools.look(); await tools.pay({n: 2}); return a"
    rules = Rules([Rule("local.look", "ask")])
    async with opened(made, store, rules=rules) as port:
        waiting = await port.run(code, mode="plan")
        assert waiting.status == "waiting"
    answer(store)
    async with opened(made, store, rules=rules) as port:
        outcome = await port.resume(waiting.run)
    assert outcome.plan is not None
    assert [write.args for write in outcome.plan.writes] == [{"n": 1}, {"n": 2}]
    assert [call.status for call in outcome.calls] == ["planned", "ok", "planned"]
    assert made == []


async def test_what_was_used_of_a_plan_is_used_after_a_restart_too(store: Path) -> None:
    made: list[Any] = []
    code = """
    await tools.pay({n: 1});
    if (await tools.look() === 1) return "planned";
    return await tools.pay({n: 1}).catch((e) => e.code)"""
    async with opened(made, store) as port:
        planned = await port.run(code, mode="plan")
        assert planned.plan is not None

    def look() -> int:
        """Look."""
        return 2

    asks = Rules([Rule("*", "allow"), Rule("local.look", "ask")])
    async with Gloveport(tools=[paying(made), look], store=store, rules=asks, spare=1) as port:
        waiting = await port.apply(planned.plan)
        assert (waiting.status, made) == ("waiting", [1])
    answer(store)
    async with Gloveport(tools=[paying(made), look], store=store, rules=asks, spare=1) as port:
        outcome = await port.resume(waiting.run)
        assert (outcome.status, made) == ("waiting", [1])  # the second one is not in the plan
        await eventually(lambda: len(port.approvals.waiting) == 1)


async def test_a_host_that_is_killed_while_it_follows_a_plan_makes_no_write_twice(store: Path, effects: Any) -> None:
    code = "return [await tools.pay({n: 1}), await tools.pay({n: 2})]"
    for point in (3, 5, 6, 7):
        own, before = store.with_name(f"{point}.sqlite"), len(effects())
        planned = await asyncio.to_thread(run_host, own, "plan", code, "typescript", "deno")
        assert planned is not None
        told = await asyncio.to_thread(run_host, own, "apply", planned["run"], KILL_AT=str(point))
        while told is None or told["status"] == "waiting":
            answer(own, happened=True, value="it happened")
            told = await asyncio.to_thread(run_host, own, "resume", planned["run"])
            if told is not None and told.get("error"):
                break
        lines = effects()[before:]
        assert lines == sorted(set(lines)), point


async def test_mode_is_checked() -> None:
    async with Gloveport(spare=1) as port:
        with pytest.raises(OptionError, match="mode must be"):
            await port.run("1", mode="dry")  # pyright: ignore
