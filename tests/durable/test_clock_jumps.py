"""The clock jumps while runs go on or wait (R2): deadlines are monotonic, and what expires does so by the clock on the wall."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gloveport import Answer, ApprovalRequest, Gloveport
from gloveport.approvals.request import EXPIRY_MARGIN_SECONDS
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.bridge.plans import ApprovedPlan
from gloveport.catalog.fingerprint import fingerprint
from gloveport.store.process_mark import LEASE_SECONDS, lives, process_mark
from gloveport.types import Plan, PlannedWrite, Tool

YEARS = 10 * 365 * 86400.0


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock on the wall."""
    now, now_ns = time.time, time.time_ns

    def move(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now() + seconds)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + int(seconds * 1e9))

    return move


@pytest.mark.integration
@pytest.mark.parametrize("seconds", [-YEARS, YEARS])
async def test_a_run_ends_at_its_deadline_whatever_the_clock_says(jump: Callable[[float], None], seconds: float) -> None:
    async def look() -> None:
        """Look, while somebody sets the clock."""
        jump(seconds)

    code = "const a = Date.now(); await tools.look(); await new Promise((r) => setTimeout(r, 20)); return Date.now() - a"
    async with Gloveport(tools=[look], engines=["quickjs"], limits={"wall_seconds": 20}, spare=1) as port:
        outcome = await port.run(code)
        assert 20 <= outcome.value < 20_000
        assert outcome.usage.wall_seconds < 20
        ended = await port.run("await new Promise((r) => setTimeout(r, 60_000))", limits={"wall_seconds": 0.2})
        assert ended.error is not None
        assert ended.error.code == "time-limit"


def test_a_host_that_cannot_be_seen_lives_while_it_wrote_about_now(jump: Callable[[float], None]) -> None:
    elsewhere = f"elsewhere {process_mark().partition(' ')[2]}"
    seen = time.time()
    for seconds, alive in ((0, True), (LEASE_SECONDS + 5, False), (-LEASE_SECONDS - 5, False), (-YEARS, False)):
        jump(seconds)
        assert lives(elsewhere, seen) is alive
        assert lives(process_mark(), seen)  # one that can be seen is not judged by the clock


def test_an_answer_counts_until_its_request_expires_and_voids_no_later_one(
    tmp_path: Path, jump: Callable[[float], None]
) -> None:
    def asked() -> ApprovalRequest:
        now = time.time()
        return ApprovalRequest("r", 1, "shop.pay", {"n": 1}, "default", asked=now, expires=now + 1000)

    with closing(ApprovalShelf(tmp_path / "store.sqlite")) as shelf:
        first = asked()
        shelf.put(first, "host")
        shelf.answer({first.id: first.digest}, Answer(True, "ada"))
        jump(1000 + EXPIRY_MARGIN_SECONDS / 2)
        found = shelf.find_same(asked())
        assert found is not None
        assert found[1] == Answer(True, "ada")
        jump(1000 + EXPIRY_MARGIN_SECONDS + 5)
        assert shelf.find_same(asked()) is None
        second = asked()
        shelf.put(second, "host")
        shelf.answer({second.id: second.digest}, Answer(True, "bo"))
        found = shelf.find_same(asked())
        assert found is not None
        assert (found[0].id, found[1]) == (second.id, Answer(True, "bo"))


def test_a_plan_that_has_expired_approves_nothing_more(jump: Callable[[float], None]) -> None:
    pay = Tool("shop.pay", "Pay.", {}, writes=True)
    writes = tuple(PlannedWrite(n, "shop.pay", {"n": 1}, fingerprint(pay)) for n in (1, 2))
    approved = ApprovedPlan(Plan("r", "default", writes, time.time() + 1000), "ada")
    assert approved.take(pay, {"n": 1})
    jump(1000 + EXPIRY_MARGIN_SECONDS + 5)
    assert not approved.take(pay, {"n": 1})
