"""The runs in the store: listed by status, tool, agent and time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.store import stored_runs
from gloveport.store.database import open_database
from gloveport.store.stored_runs import StoredRuns

COLUMNS = "id, agent, status, fence, started, language, engine, request"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[StoredRuns]:
    path = tmp_path / "store.sqlite"
    with closing(open_database(path)) as connection:
        for number in range(20):
            status = ("completed", "failed", "waiting", "completed")[number % 4]
            row = (
                f"{number:032x}",
                "bot" if number % 2 else "default",
                status,
                1,
                number * 1_000_000,
                "typescript",
                "deno",
            )
            connection.execute(f"INSERT INTO runs ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, '{{}}')", row)
            for tool in ("shop.look", "shop.pay") if number < 10 else ("mail.send",):
                connection.execute("INSERT INTO run_tools VALUES (?, ?)", (tool, row[0]))
    with closing(StoredRuns(path)) as opened:
        yield opened


@pytest.mark.parametrize("few", [0, 5000])
def test_runs_are_listed_by_status_tool_agent_and_time(runs: StoredRuns, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_runs, "MAX_RARE_RUNS", few)

    def listed(**wanted: object) -> list[int]:
        return [int(run.id, 16) for run in runs.latest(**wanted)]  # type: ignore[arg-type]

    assert listed() == list(range(19, -1, -1))
    assert listed(limit=3) == [19, 18, 17]
    assert listed(since=17) == [19, 18, 17]
    assert listed(agent="bot", limit=2) == [19, 17]
    assert listed(statuses=("failed",)) == [17, 13, 9, 5, 1]
    assert listed(statuses=("waiting", "failed"), limit=3) == [18, 17, 14]
    assert listed(tool="shop.*") == list(range(9, -1, -1))
    assert listed(tool="shop.pay", statuses=("failed",), agent="bot", since=2) == [9, 5]
    assert listed(tool="mail.send", limit=2) == [19, 18]
    assert listed(tool="none.*") == []
