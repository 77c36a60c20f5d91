"""A rollback undoes writes in reverse order, asks what the current rules ask, and makes no inverse twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, Gloveport, OptionError, Rule, Rules, ToolError, tool
from gloveport.store.database import open_database
from gloveport.store.verification import verify
from tests.durable.test_resume import answer, run_host, start
from tests.durable.test_snippets import save

pytestmark = pytest.mark.integration


class Shop:
    """Tools that keep what they did."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.broken = False

    def port(self, store: Path, *rules: Rule, **options: Any) -> Gloveport:
        @tool(writes=True, undo="remove(id = result.id, owner = args.owner)")
        def create(owner: str) -> dict[str, int]:
            """Create."""
            self.made.append(f"create {owner}")
            return {"id": len(self.made)}

        @tool(writes=True)
        def remove(id: int, owner: str) -> None:
            """Remove."""
            if self.broken:
                raise ToolError("it is locked", status=409)
            self.made.append(f"remove {id} of {owner}")

        @tool(writes=True)
        def send(text: str) -> None:
            """Send."""
            self.made.append(f"send {text}")

        given = Rules([*rules] or [Rule("*", "allow")])
        return Gloveport(tools=[create, remove, send], store=store, rules=given, spare=1, **options)


CODE = "await tools.create({owner: 'ada'}); await tools.send({text: 'hi'}); await tools.create({owner: 'eve'}); return 1"


async def test_the_writes_of_a_run_are_undone_once_in_reverse_order(store: Path) -> None:
    shop = Shop()
    async with shop.port(store) as port:
        run = (await port.run(CODE)).run
        found = await port.rollback(run[:8])
        assert shop.made[3:] == ["remove 3 of eve", "remove 1 of ada"]
        assert [(write.tool, write.status) for write in found.writes] == [
            ("local.create", "undone"),
            ("local.send", "no-inverse"),
            ("local.create", "undone"),
        ]
        assert (found.ok, found.writes[1].problem) == (False, "its tool declares no inverse")
        again = await port.rollback(run)
        assert [write.status for write in again.writes] == ["undone-before", "no-inverse", "undone-before"]
        assert len(shop.made) == 5
    assert not verify(open_database(store)).problems


async def test_the_writes_of_a_snippet_are_undone_with_those_of_its_caller(store: Path) -> None:
    shop = Shop()
    save(
        store,
        "pair",
        "await tools.create({owner: 'ada'}); await tools.create({owner: 'eve'})",
        "local.create",
        parameters=None,
    )
    async with shop.port(store) as port:
        run = (await port.run("await tools.create({owner: 'bob'}); await tools.snippets.pair(); return 1")).run
        found = await port.rollback(run)
        assert shop.made[3:] == ["remove 3 of eve", "remove 2 of ada", "remove 1 of bob"]
        assert found.ok
        assert {write.status for write in (await port.rollback(run)).writes} == {"undone-before"}
        assert len(shop.made) == 6


async def test_an_inverse_asks_where_the_rules_ask_and_is_denied_where_they_deny(store: Path) -> None:
    shop = Shop()
    asked: list[Any] = []

    def ask(request: Any) -> bool:
        asked.append((request.tool, dict(request.args)))
        return request.args["owner"] == "eve"

    async with shop.port(store) as port:
        run = (await port.run(CODE)).run
    async with shop.port(store, Rule("local.remove", "ask"), on_approval=ask) as port:
        found = await port.rollback(run)
    assert [write.status for write in found.writes] == ["undone", "no-inverse", "denied"]
    assert asked == [("local.remove", {"id": 3, "owner": "eve"}), ("local.remove", {"id": 1, "owner": "ada"})]
    async with shop.port(store, Rule("local.remove", "deny")) as port:
        found = await port.rollback(run)
    assert [write.status for write in found.writes] == ["undone-before", "no-inverse", "denied"]
    assert shop.made[3:] == ["remove 3 of eve"]


async def test_the_arguments_that_a_person_has_changed_are_those_that_are_undone(store: Path) -> None:
    shop = Shop()
    edit = Answer(True, "ada", args={"owner": "bob"})
    async with shop.port(store, Rule("local.create", "ask"), Rule("*", "allow"), on_approval=lambda _: edit) as port:
        run = (await port.run("await tools.create({owner: 'eve'})")).run
        found = await port.rollback(run)
    assert shop.made == ["create bob", "remove 1 of bob"]
    assert found.ok


async def test_an_inverse_that_fails_is_reported_and_can_be_tried_again(store: Path) -> None:
    shop = Shop()
    async with shop.port(store) as port:
        run = (await port.run("await tools.create({owner: 'ada'})")).run
        shop.broken = True
        (write,) = (await port.rollback(run)).writes
        assert (write.status, "it is locked" in write.problem) == ("failed", True)
        shop.broken = False
        assert (await port.rollback(run)).ok
    assert shop.made == ["create ada", "remove 1 of ada"]


async def test_a_run_that_has_not_ended_is_not_rolled_back(store: Path) -> None:
    shop = Shop()
    async with shop.port(store, Rule("*", "ask")) as port:
        waiting = await port.run(CODE)
        with pytest.raises(OptionError, match="has not ended"):
            await port.rollback(waiting.run)


async def test_a_plan_has_nothing_to_undo(store: Path) -> None:
    shop = Shop()
    async with shop.port(store) as port:
        planned = await port.run(CODE, mode="plan")
        assert (await port.rollback(planned.run)).writes == ()
    assert shop.made == []


def test_a_wrong_inverse_of_a_function_is_an_error_at_once() -> None:
    @tool(writes=True, undo="remov(id = result)")
    def create() -> int:
        """Create."""
        return 1

    with pytest.raises(OptionError, match="has no tool `remov`"):
        Gloveport(tools=[create])


async def test_two_rollbacks_at_the_same_moment_undo_each_write_once(store: Path, effects: Any) -> None:
    ran = await asyncio.to_thread(
        run_host, store, "run", "for (const n of [1, 2, 3]) await tools.pay({n})", "typescript", "deno"
    )
    assert ran is not None
    both = [start(store, "rollback", ran["run"]) for _ in range(2)]
    told = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    refused = [one["error"] for one in told if one["status"] == "failed"]
    assert refused in ([], ["bad-option"]), told  # they may also have come one after the other
    undone = [line for line in effects() if line.startswith("refund")]
    assert sorted(undone) == [f"refund paid {n}" for n in (1, 2, 3)]


async def test_a_second_rollback_of_a_run_is_refused_while_the_first_one_waits_for_a_person(tmp_path: Path) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def later(request: Any) -> Answer:
        asked.set()
        await answered.wait()
        return Answer(False, "ada")

    rules = [Rule("*create", "allow"), Rule("*remove", "ask")]
    async with Shop().port(tmp_path / "s.sqlite", *rules, on_approval=later) as port:
        run = (await port.run("await tools.create({owner: 'ada'})")).run
        first = asyncio.create_task(port.rollback(run))
        await asyncio.wait_for(asked.wait(), 30)
        with pytest.raises(OptionError, match="is being rolled back"):
            await port.rollback(run)
        answered.set()
        assert [one.status for one in (await first).writes] == ["denied"]
        assert [one.status for one in (await port.rollback(run)).writes] == ["denied"]


async def test_a_rollback_that_is_killed_is_gone_on_with_and_makes_no_inverse_twice(store: Path, effects: Any) -> None:
    code = "for (const n of [1, 2, 3]) await tools.pay({n})"
    for point in (1, 2, 3, 4, 5, 6):
        own, before = store.with_name(f"{point}.sqlite"), len(effects())
        ran = await asyncio.to_thread(run_host, own, "run", code, "typescript", "deno")
        assert ran is not None
        await asyncio.to_thread(run_host, own, "rollback", ran["run"], KILL_AT=str(point))
        process = await asyncio.to_thread(start, own, "rollback", ran["run"])
        while process.poll() is None:
            answer(own, happened=True, value=None)
            await asyncio.sleep(0.05)
        told = json.loads(process.communicate()[0])
        assert all(status in ("undone", "undone-before") for status in told["writes"]), (point, told)
        undone = [line for line in effects()[before:] if line.startswith("refund")]
        assert len(undone) == len(set(undone)), point
