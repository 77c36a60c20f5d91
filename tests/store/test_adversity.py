"""Runs are recorded while the file is locked, the disk is full or the clock jumps: nothing is corrupt, and none looks whole."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.errors import StoreError
from gloveport.store import event_log
from gloveport.store.database import open_database
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import size_of
from gloveport.store.run_audit import RunAudit, encoded
from gloveport.store.run_recorder import NOT_RECORDED, RunRecorder
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.verification import damaged_payloads, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def stored(path: Path) -> Iterator[StoredRuns]:
    with closing(StoredRuns(path)) as runs:
        yield runs


def begin(log: EventLog, run: str) -> tuple[RunRecorder, RunAudit]:
    recorder = RunRecorder(log, run)
    recorder.started("default", "typescript", "quickjs", lambda: {"code": "0" * 64, "memory_mb": 64})
    recorder.event(b'["start",1000,{}]')
    return recorder, RunAudit(log, run, "default", recorder)


def check(path: Path) -> None:
    with closing(open_database(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert verify(connection).problems == ()
        assert damaged_payloads(connection) == ()


async def test_a_write_is_refused_while_the_disk_is_full_and_the_run_goes_on_whole(path: Path, stored: StoredRuns) -> None:
    log = EventLog(path)
    recorder, audit = begin(log, "one")
    await log.flush()
    assert log._connection is not None
    log._connection.execute("PRAGMA max_page_count = 1")
    large = b'["log","log","%b"]' % (b"x" * 200_000)
    recorder.frame(large)
    with pytest.raises(StoreError, match="full"):
        await audit.call_started_now(1, "shop.pay", {"n": 1}, writes=True)
    assert not await recorder.is_complete()
    assert [sender for _, sender, _ in stored.steps_after(stored.find("one"), 0)] == ["host"]
    log._connection.execute("PRAGMA max_page_count = 1000000")
    assert await recorder.is_complete()
    recorder.ended("completed", None, 1, lambda: b"{}")
    await log.close()
    steps = stored.recording(stored.find("one")).steps
    assert steps == (("host", b'["start",1000,{}]'), ("guest", large))  # and no write that has left
    check(path)


async def test_steps_that_a_locked_file_could_not_take_make_a_run_not_resumable(
    path: Path, stored: StoredRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.store.database.LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(event_log, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(event_log, "MAX_WAITING_ITEMS", 50)
    log = EventLog(path)
    recorder, _ = begin(log, "one")
    await log.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        for number in range(500):
            recorder.frame(b'["log","log","%d"]' % number)
        holder.execute("ROLLBACK")
    await log.flush()
    assert not await recorder.is_complete()
    await log.flush()
    run = stored.find("one")
    assert (run.obstacle, stored.recording(run).steps) == (NOT_RECORDED, ())
    await log.close()
    check(path)


async def test_while_nothing_can_be_written_only_so_many_bytes_are_kept(
    path: Path, stored: StoredRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(event_log, "MAX_KEPT_BYTES", 1_000_000)
    log = EventLog(path)
    recorder, audit = begin(log, "one")
    await log.flush()
    assert log._connection is not None
    log._connection.execute("PRAGMA max_page_count = 1")
    for number in range(10):
        recorder.frame(b'["log","log","%d%b"]' % (number, b"x" * 100_000))
        audit.call_ended(number, "ok", None, encoded("y" * 100_000))
        with pytest.raises(StoreError, match="full"):
            await log.flush()
    while sum(map(size_of, tuple(log._waiting))) > 1_000_000:  # noqa: ASYNC110 - the thread tells nobody
        await asyncio.sleep(0.01)
    log._connection.execute("PRAGMA max_page_count = 1000000")
    assert not await recorder.is_complete()
    await log.close()
    run = stored.find("one")
    assert (run.obstacle, stored.recording(run).steps) == (NOT_RECORDED, ())
    with closing(open_database(path)) as connection:
        (lost,) = connection.execute("SELECT body FROM events WHERE kind = 'lost'").fetchall()
    assert 1 <= json.loads(lost[0])["events"] <= 9
    check(path)


async def test_a_host_that_ends_while_nothing_can_be_written_says_what_is_lost(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventLog(path)
    recorder, _ = begin(log, "one")
    await log.flush()
    assert log._connection is not None
    log._connection.execute("PRAGMA max_page_count = 1")
    recorder.frame(b'["log","log","%b"]' % (b"x" * 200_000))
    await log.close()
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "full" in told
    assert told.endswith("what was not written yet is not recorded")


@pytest.mark.parametrize("jump", [-10 * 365 * 86400, 10 * 365 * 86400])
async def test_the_clock_may_jump_while_a_run_is_recorded_and_taken_over(
    path: Path, stored: StoredRuns, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    log = EventLog(path)
    recorder, audit = begin(log, "one")
    await audit.call_started_now(1, "shop.pay", {"n": 1}, writes=True)
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + jump * 10**9)
    await audit.call_started_now(2, "shop.pay", {"n": 2}, writes=True)
    recorder.frame(b'["log","log","after the jump"]')
    await log.flush()
    run = stored.find("one")
    assert run.owned  # a process that can be seen lives, whatever the clock says
    assert [sender for sender, _ in stored.recording(run).steps] == ["host", "write", "write", "guest"]
    second = EventLog(path)
    await second.flush()
    assert stored.take(run, second.chain) == 2
    with pytest.raises(StoreError, match="taken over"):
        await audit.call_started_now(3, "shop.pay", {"n": 3}, writes=True)
    RunRecorder(second, "one", 2, 4).ended("completed", None, 2, lambda: b"{}")
    await second.close()
    await log.close()
    assert stored.find("one").status == "completed"
    assert [run.id for run in stored.latest()] == ["one"]
    check(path)
