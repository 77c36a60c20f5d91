"""Writes over HTTP around a kill: an idempotency key is reused, so the service makes the write once (B11)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.durable.receiver import DEFINITION
from tests.durable.test_resume import answer, only_run, run_host, start
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration


@pytest.fixture
def bank(tmp_path: Path) -> str:
    file = tmp_path / "bank.json"
    file.write_text(json.dumps(DEFINITION))
    return str(file)


async def killed_and_retried(store: Path, effects: Any, bank: str, tool: str) -> Any:
    """Kill a host between a request and its reply; then make the write again, as a person says. Return the outcome."""
    process = start(store, "run", f"return await tools.bank.{tool}({{n: 5, hang: true}})", "typescript", "deno", BANK=bank)
    await eventually(lambda: effects() == [f"{tool} 5"])
    process.kill()
    process.communicate()
    run = only_run(store).id
    asked = await asyncio.to_thread(run_host, store, "resume", run, BANK=bank)
    assert asked is not None
    assert asked["status"] == "waiting"
    answer(store)
    return start(store, "resume", run, BANK=bank)


async def test_an_interrupted_write_that_is_made_again_has_the_same_key(store: Path, effects: Any, bank: str) -> None:
    again = await killed_and_retried(store, effects, bank, "pay")
    told = json.loads((await asyncio.to_thread(again.communicate, timeout=60))[0])
    assert (told["status"], told["value"], effects()) == ("completed", {"id": "pay-1"}, ["pay 5"])


async def test_without_a_key_the_service_would_make_it_twice(store: Path, effects: Any, bank: str) -> None:
    again = await killed_and_retried(store, effects, bank, "charge")
    await eventually(lambda: effects() == ["charge 5", "charge 5"])
    again.kill()
    again.communicate()


async def test_each_write_has_its_own_key_and_is_undone_by_the_inverse_of_the_settings(
    store: Path, effects: Any, bank: str
) -> None:
    code = "return [await tools.bank.pay({n: 1}), await tools.bank.pay({n: 1})]"
    ran = await asyncio.to_thread(run_host, store, "run", code, "typescript", "deno", BANK=bank)
    assert ran is not None
    assert ran["value"] == [{"id": "pay-1"}, {"id": "pay-2"}]
    told = await asyncio.to_thread(run_host, store, "rollback", ran["run"], BANK=bank)
    assert told is not None
    assert told["writes"] == ["undone", "undone"]
    assert effects() == ["pay 1", "pay 1", "refund pay-2", "refund pay-1"]
