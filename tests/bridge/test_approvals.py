"""Calls that ask: they wait without a slot, a person answers, and the answer decides (B6–B9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.bridge import Bridge, RunBridge, RunContext
from gloveport.catalog import Catalog
from gloveport.errors import ApprovalError, ToolError
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.budgets import Budget
from gloveport.rules.rule import Rule
from gloveport.rules.rules import Rules
from gloveport.types import CallRecord, Limits, Tool
from tests.bridge.support import DEADLINE, FakeSource, call, refused

SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "to": {"type": "string"}},
    "additionalProperties": False,
}
PAY = Tool("shop.pay", "Pay.", SCHEMA, kind="openapi", writes=True)
READ = Tool("shop.read", "Read.", SCHEMA, kind="openapi")


class Shop:
    """A run over a shop whose payments ask, the desk, and what happened."""

    def __init__(self, *rules: Rule | Budget, desk: ApprovalDesk | None = None, **limits: Any) -> None:
        self.desk = desk or ApprovalDesk()
        self.source = FakeSource("shop", [PAY, READ], answer="done")
        self.book = RuleBook(
            Rules(
                [one for one in rules if isinstance(one, Rule)],
                budgets=[one for one in rules if isinstance(one, Budget)],
            )
        )
        self._changed = asyncio.Event()
        self.desk.listen(lambda what, request: self._changed.set())
        self.events: list[tuple[str, str]] = []
        self.waits: list[bool] = []
        self.run = self.start("run-1", **limits)

    def start(self, name: str, **limits: Any) -> RunBridge:
        bridge = Bridge(Catalog([self.source]), self.book, self.desk)
        run = bridge.for_run(Limits(**limits), RunContext(name, on_call=self._happened, line_of=lambda tool: 7))
        run.approvals.on_waiting = self.waits.append
        return run

    def _happened(self, kind: str, record: CallRecord) -> None:
        self.events.append((kind, record.status))

    async def asked(self, count: int = 1) -> tuple[ApprovalRequest, ...]:
        async with asyncio.timeout(DEADLINE):
            while len(self.desk.waiting) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.desk.waiting

    def answer(self, request: ApprovalRequest, answer: Answer) -> None:
        self.desk.answer(request.id, request.digest, answer)


YES, NO = Answer(True, "ada"), Answer(False, "ada", reason="too much")


async def test_a_write_asks_and_an_approved_call_is_made_once() -> None:
    shop = Shop()
    made = asyncio.ensure_future(call(shop.run, "shop.pay", {"amount": 5, "to": "Bo"}))
    (request,) = await shop.asked()
    assert (request.tool, request.args, request.run, request.call, request.line, request.reason) == (
        *("shop.pay", {"amount": 5, "to": "Bo"}, "run-1", 1, 7, "it writes"),
    )
    assert shop.source.sent == []
    assert shop.run.records[0].status == "waiting"
    shop.answer(request, YES)
    assert await made == "done"
    assert shop.source.sent == [{"amount": 5, "to": "Bo"}]
    assert shop.events == [("call-waiting", "waiting"), ("call-started", "running"), ("call-ended", "ok")]
    (record,) = shop.run.records
    assert record.approval is not None
    assert (record.approval.approver, record.approval.scope, record.approval.asked) == ("ada", "once", None)
    with pytest.raises(ApprovalError, match="waits"):
        shop.answer(request, YES)


async def test_a_person_is_asked_about_what_is_sent_even_if_a_listener_changes_the_record() -> None:
    class MeddlingShop(Shop):
        def _happened(self, kind: str, record: CallRecord) -> None:
            record.args["to"] = "Eve"

    shop = MeddlingShop()
    made = asyncio.ensure_future(call(shop.run, "shop.pay", {"to": "Bo"}))
    (request,) = await shop.asked()
    shop.answer(request, YES)
    await made
    assert (request.args, shop.source.sent) == ({"to": "Bo"}, [{"to": "Bo"}])


async def test_a_denied_call_is_an_error_that_the_program_can_catch() -> None:
    shop = Shop()
    made = asyncio.ensure_future(refused(shop.run, "shop.pay", {"amount": 5}))
    shop.answer((await shop.asked())[0], NO)
    error = await made
    assert (error.code, error.origin, error.message) == (
        "denied",
        "gloveport",
        "`tools.shop.pay` was denied by ada: too much",
    )
    assert shop.source.sent == []
    assert shop.run.records[0].status == "failed"


async def test_a_call_that_waits_has_no_slot_and_stops_the_clock() -> None:
    shop = Shop(max_concurrent_calls=1)
    payments = [asyncio.ensure_future(call(shop.run, "shop.pay", {"amount": n}, id=n + 1)) for n in range(3)]
    requests = await shop.asked(3)
    assert await call(shop.run, "shop.read", {}, id=9) == "done"
    assert shop.waits == [True]
    for request in requests:
        shop.answer(request, YES)
    await asyncio.gather(*payments)
    assert shop.waits == [True, False]


async def test_changed_arguments_are_validated_sent_and_recorded_beside_those_that_were_asked() -> None:
    shop = Shop(Rule("shop.pay", "deny", when="args.amount > 100"))
    made = asyncio.ensure_future(call(shop.run, "shop.pay", {"amount": 50}))
    (request,) = await shop.asked()
    with pytest.raises(ToolError, match="bad arguments"):
        shop.answer(request, Answer(True, "ada", args={"amount": "many"}))
    shop.answer(request, Answer(True, "ada", args={"amount": 20}))
    await made
    assert shop.source.sent == [{"amount": 20}]
    (record,) = shop.run.records
    assert record.args == {"amount": 20}
    assert record.approval is not None
    assert record.approval.asked == {"amount": 50}


async def test_no_answer_overrides_a_rule_that_denies() -> None:
    shop = Shop(Rule("shop.pay", "deny", when="args.amount > 100", reason="too much"))
    made = asyncio.ensure_future(refused(shop.run, "shop.pay", {"amount": 50}))
    (request,) = await shop.asked()
    shop.answer(request, Answer(True, "ada", args={"amount": 500}))
    assert "is not allowed: too much" in (await made).message
    assert shop.source.sent == []


async def test_a_changed_rule_applies_to_the_next_call_and_to_one_that_waits() -> None:
    shop = Shop()
    waiting = asyncio.ensure_future(refused(shop.run, "shop.pay", {"amount": 1}))
    (request,) = await shop.asked()
    shop.book.replace(Rules([Rule("shop.*", "deny")]))
    assert (await refused(shop.run, "shop.read", {})).code == "denied"
    shop.answer(request, YES)
    assert "is not allowed" in (await waiting).message
    shop.book.replace(Rules([Rule("shop.*", "allow")]))
    assert await call(shop.run, "shop.pay", {"amount": 1}, id=3) == "done"
    assert len(shop.source.sent) == 1


@pytest.mark.parametrize(("scope", "same_run", "other_run"), [("once", 1, 1), ("run", 0, 1), ("always", 0, 0)])
async def test_an_approval_covers_what_its_scope_says(scope: Any, same_run: int, other_run: int) -> None:
    shop = Shop()
    made = asyncio.ensure_future(call(shop.run, "shop.pay", {"amount": 1}))
    shop.answer((await shop.asked())[0], Answer(True, "ada", scope))
    await made
    for run, asks in ((shop.run, same_run), (shop.start("run-2"), other_run)):
        later = asyncio.ensure_future(call(run, "shop.pay", {"amount": 2}, id=5))
        await asyncio.wait(
            {later, asyncio.ensure_future(shop.asked())}, return_when=asyncio.FIRST_COMPLETED, timeout=DEADLINE
        )
        assert len(shop.desk.waiting) == asks
        for request in shop.desk.waiting:
            shop.answer(request, YES)
        await later
    other_shape = asyncio.ensure_future(call(shop.run, "shop.pay", {}, id=7))
    shop.answer((await shop.asked())[0], YES)
    await other_shape


async def test_nobody_answers_in_time() -> None:
    shop = Shop(desk=ApprovalDesk(expiry_seconds=0.05))
    error = await refused(shop.run, "shop.pay", {"amount": 1})
    assert (error.code, shop.source.sent) == ("denied", [])
    assert "nobody answered" in error.message


async def test_a_run_that_ends_withdraws_what_it_asked() -> None:
    shop = Shop()
    made = asyncio.ensure_future(call(shop.run, "shop.pay", {"amount": 1}))
    (request,) = await shop.asked()
    shop.run.close()
    made.cancel()
    with pytest.raises((ToolError, asyncio.CancelledError)):
        await made
    assert shop.desk.waiting == ()
    with pytest.raises(ApprovalError):
        shop.answer(request, YES)
    assert shop.source.sent == []


@pytest.mark.parametrize("given", [True, False, Answer(True, "bo"), Answer(False, "bo", reason="no")])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_the_owner_of_the_port_answers_in_code(given: Answer | bool, kind: str) -> None:
    async def answer_async(request: ApprovalRequest) -> Answer | bool:
        return given

    shop = Shop(desk=ApprovalDesk(answer_async if kind == "async" else lambda request: given))
    approved = given if isinstance(given, bool) else given.approved
    if approved:
        assert await call(shop.run, "shop.pay", {"amount": 1}) == "done"
    else:
        assert (await refused(shop.run, "shop.pay", {"amount": 1})).code == "denied"
    assert len(shop.source.sent) == approved


async def test_an_owners_function_that_fails_has_not_approved() -> None:
    def fail(request: ApprovalRequest) -> bool:
        raise KeyError("x")

    shop = Shop(desk=ApprovalDesk(fail))
    assert (await refused(shop.run, "shop.pay", {"amount": 1})).code == "denied"
    shop = Shop(desk=ApprovalDesk(lambda request: "yes"))  # pyright: ignore[reportArgumentType]
    assert (await refused(shop.run, "shop.pay", {"amount": 1})).code == "denied"
    shop = Shop(desk=ApprovalDesk(lambda request: Answer(True, "bo", args={"amount": "x"})))
    assert "bad arguments" in (await refused(shop.run, "shop.pay", {"amount": 1})).message


async def test_budgets_limit_calls_in_a_run_and_in_an_hour() -> None:
    shop = Shop(Budget("shop.read", calls_per_run=2, place="gloveport.toml:9"), Budget("shop.*", calls_per_hour=3))
    for number in (1, 2):
        await call(shop.run, "shop.read", {}, id=number)
    error = await refused(shop.run, "shop.read", {})
    assert (error.code, error.origin) == ("denied", "gloveport")
    assert error.setting == 'raise `limit = "shop.read", calls_per_run = 2` in gloveport.toml:9'
    other = shop.start("run-2")
    await call(other, "shop.read", {}, id=4)
    assert "`shop.*` is used up" in (await refused(other, "shop.read", {})).message
    assert len(shop.source.sent) == 3


async def test_a_budget_of_concurrent_calls_makes_the_others_wait() -> None:
    running: Counter[str] = Counter()

    class Slow(FakeSource):
        async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
            running["now"] += 1
            running["most"] = max(running["most"], running["now"])
            await asyncio.sleep(0.01)
            running["now"] -= 1

    shop = Shop(Budget("shop.read", concurrent=2))
    shop.source = Slow("shop", [READ])
    run = shop.start("run-3")
    await asyncio.gather(*(call(run, "shop.read", {}, id=number) for number in range(1, 9)))
    assert running["most"] == 2
