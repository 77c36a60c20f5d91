"""Retention: old runs go with what only they refer to, runs that go on stay, and the audit stays whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gloveport.config.store import StoreConfig
from gloveport.store import retention
from gloveport.store.database import StoreFile, open_database
from gloveport.store.event_log import EventLog
from gloveport.store.run_audit import RunAudit
from gloveport.store.run_recorder import RunRecorder
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.verification import damaged_payloads, verify

DAY = 86400
KEEP_ALL = StoreConfig(keep_days=36_500)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


async def record(path: Path, run: str, *, status: Any = "completed", config: StoreConfig | None = KEEP_ALL) -> None:
    """Record a run with a call whose result is large."""
    log = EventLog(path, config)
    recorder = RunRecorder(log, run)
    audit = RunAudit(log, run, "default", recorder)
    code = f"program of {run}"
    recorder.started("default", "typescript", "quickjs", lambda: {"code": digest_of(code), "memory_mb": 64})
    audit.started(code, "typescript", "quickjs")
    recorder.event(b'["start",1000,{}]')
    recorder.frame(b'["call",1,"shop.look",[{}]]')
    audit.call_started(1, "shop.look", {"of": run})
    result = f"{run} and the same " * 500
    audit.call_ended(1, "ok", None, result)
    recorder.event(b'["reply",2000,1,true,"%b"]' % result.encode())
    if status != "waiting":
        recorder.ended(status, None, 1, lambda: b"{}")
    else:
        recorder.release()
    await log.close()


def digest_of(code: str) -> str:
    from gloveport.store.contents import digest

    return digest(code.encode()).hex()


def make_older(path: Path, run: str, days: float) -> None:
    """Make a run, and the contents that it refers to alone, so much older."""
    with closing(open_database(path)) as connection:
        moved = int(days * DAY * 1e6)
        connection.execute("UPDATE runs SET started = started - ?, ended = ended - ? WHERE id = ?", (moved, moved, run))
        connection.execute("UPDATE payloads SET at = at - ?", (moved,))
        connection.execute("DELETE FROM store_state")


def ids(path: Path) -> set[str]:
    with closing(StoredRuns(path)) as runs:
        return {run.id for run in runs.latest()}


def count(path: Path, table: str) -> int:
    with closing(open_database(path)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def check_audit(path: Path, head: str | None = None) -> None:
    with closing(open_database(path)) as connection:
        assert verify(connection, head).problems == ()
        assert damaged_payloads(connection) == ()


async def test_old_runs_go_with_their_contents_and_the_audit_stays_whole(path: Path) -> None:
    await record(path, "old")
    await record(path, "waiting", status="waiting")
    make_older(path, "old", 100)
    make_older(path, "waiting", 100)
    with closing(open_database(path)) as connection:
        head = next(iter(verify(connection).heads.values()))[1]
        events = count(path, "events")
    await record(path, "new", config=replace(KEEP_ALL, keep_days=90))
    assert ids(path) == {"waiting", "new"}
    assert count(path, "events") > events
    assert count(path, "run_tools") == 2
    check_audit(path, head)
    with closing(StoredRuns(path)) as runs:
        for run in map(runs.find, ("waiting", "new")):
            assert len(runs.recording(run).steps) == 3
            assert runs.code(run) == f"program of {run.id}"
    with closing(open_database(path)) as connection:
        kept = [row[0].hex() for row in connection.execute("SELECT digest FROM payloads")]
    assert digest_of("program of old") not in kept
    assert len(kept) == 2 + 3  # of the one that waits: its program and the result that its steps need


async def test_a_content_that_is_used_again_stays(path: Path) -> None:
    await record(path, "same")
    make_older(path, "same", 100)
    with closing(open_database(path)) as connection:
        connection.execute("UPDATE runs SET id = 'first'")
        connection.execute("UPDATE run_steps SET run = 'first'")
    await record(path, "same", config=replace(KEEP_ALL, keep_days=90))
    assert ids(path) == {"same"}
    with closing(StoredRuns(path)) as runs:
        assert len(runs.recording(runs.find("same")).steps) == 3
        assert runs.code(runs.find("same")) == "program of same"
    assert count(path, "payloads") == 3


async def test_the_oldest_runs_go_when_the_store_is_too_large(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH_RUNS", 1)
    for number, run in enumerate(("third", "second", "first")):
        await record(path, run)
        make_older(path, run, number + 1)
    used: list[int] = [200 * 2**20, 200 * 2**20, 50 * 2**20]
    monkeypatch.setattr(retention, "used_bytes", lambda _: used.pop(0))
    small = replace(KEEP_ALL, max_mb=100)
    with closing(open_database(path)) as connection:
        while used:
            retention.apply_now_and_then(connection, small)
    assert ids(path) == {"third"}
    check_audit(path)


async def test_hosts_apply_it_once_an_hour_together_and_go_on_when_the_clock_jumps(path: Path) -> None:
    await record(path, "one")
    make_older(path, "one", 100)
    with closing(open_database(path)) as connection:
        now = time.time_ns() // 1000
        connection.execute("INSERT OR REPLACE INTO store_state VALUES ('pruned', ?)", (now - 1_000_000,))
        retention.apply_now_and_then(connection, StoreConfig())
        assert ids(path) == {"one"}
        connection.execute("UPDATE store_state SET value = ?", (now + 10**12,))  # a clock that was far ahead
        retention.apply_now_and_then(connection, StoreConfig())
        assert ids(path) == set()


@pytest.fixture
def many(path: Path) -> Iterator[StoreFile]:
    with closing(StoreFile(path)) as store:
        with store.writing() as connection:
            for number in range(250):
                status = "completed" if number % 5 else "waiting"
                connection.execute(
                    "INSERT INTO runs (id, agent, status, fence, started, ended, language, engine, request)"
                    " VALUES (?, 'a', ?, 1, 0, ?, 'typescript', 'deno', '{}')",
                    (str(number), status, number if status == "completed" else None),
                )
        yield store


def test_a_step_is_bounded(many: StoreFile) -> None:
    with many.reading() as connection:
        assert retention.prunable_runs(connection, 10**12) == 200
        assert [retention.prune_step(connection, 10**12).runs for _ in range(3)] == [100, 100, 0]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (50,)
