"""Budgets of calls in an hour, which all hosts on a store share."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from gloveport.errors import StoreError
from gloveport.host.runs.port_store import PortStore
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.budgets import Budget
from gloveport.rules.rules import Rules
from gloveport.store.database import open_database
from tests.bridge.support import call, refused
from tests.bridge.test_approvals import Shop

HOURLY = Budget("shop.*", calls_per_hour=3)


def shop_at(store: PortStore, *budgets: Budget) -> Shop:
    shop = Shop()
    shop.book = RuleBook(Rules(budgets=budgets))
    shop.book.counts.take_hourly = store.take_hourly
    shop.run = shop.start("run-1")
    return shop


async def test_hosts_share_what_is_left_of_an_hour(tmp_path: Path) -> None:
    one, two = (PortStore(tmp_path / "store.sqlite") for _ in range(2))
    shops = [shop_at(store, HOURLY, Budget("shop.read", concurrent=1)) for store in (one, two)]
    made = [call(shop.run, "shop.read", {}, id=number) for shop in shops for number in range(1, 6)]
    outcomes = await asyncio.gather(*made, return_exceptions=True)
    assert Counter(type(found).__name__ for found in outcomes) == {"str": 3, "ToolError": 7}
    assert sum(len(shop.source.sent) for shop in shops) == 3
    assert all(sum(shop.book.counts._running.values()) == 0 for shop in shops)
    await one.close()
    await two.close()


@pytest.mark.parametrize("moved", [-3700, 3700])
async def test_uses_of_another_hour_do_not_count(tmp_path: Path, moved: float, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PortStore(tmp_path / "store.sqlite")
    counted = [HOURLY, Budget("shop.*", calls_per_hour=3, place="again"), Budget("*", "bo", calls_per_hour=9)]
    for _ in range(3):
        assert await store.take_hourly(counted, "ada") is None
    assert await store.take_hourly(counted, "ada") in counted[:2]
    assert await store.take_hourly(counted, "bo") is None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + moved)
    assert await store.take_hourly(counted, "ada") is None
    await store.close()


async def test_a_call_that_cannot_be_counted_is_not_made(tmp_path: Path) -> None:
    store = PortStore(tmp_path / "store.sqlite")
    shop = shop_at(store, HOURLY)
    await call(shop.run, "shop.read", {}, id=1)
    with open_database(store.path) as connection:
        connection.execute("DROP TABLE budget_uses")
    connection.close()
    error = await refused(shop.run, "shop.read", {})
    assert error.code == "store-unavailable" and len(shop.source.sent) == 1
    with pytest.raises(StoreError):
        await store.take_hourly([HOURLY], "ada")
    assert sum(shop.book.counts._running.values()) == 0
    await store.close()
