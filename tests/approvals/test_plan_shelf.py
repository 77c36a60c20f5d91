"""The plans in the store: which of them a list has."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.approvals import plan_shelf
from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.types import Plan, PlannedWrite


def test_a_list_ends_where_its_plans_have_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(PlanShelf(tmp_path / "store.sqlite")) as shelf:
        for number in range(4):
            write = PlannedWrite(1, "shop.pay", {"text": "x" * 10_000}, "f", 1, (), ())
            shelf.put(Plan(f"run{number}", "default", (write,), time.time() + 1000 + number, ()))
        assert [plan.run for plan in shelf.waiting()] == ["run3", "run2", "run1", "run0"]
        version = shelf.version()
        monkeypatch.setattr(plan_shelf, "MAX_LISTED_BYTES", 15_000)
        assert [plan.run for plan in shelf.waiting()] == ["run3", "run2"]
        monkeypatch.setattr(plan_shelf, "MAX_LISTED_BYTES", 1)
        assert [plan.run for plan in shelf.waiting()] == ["run3"]  # one is always shown, however large
        assert shelf.version() == version
        shelf.approve(shelf.waiting()[0], "ada", "run4")
        assert shelf.version() != version
