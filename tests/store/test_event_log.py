"""The store: events are kept in order, survive kills, and can't be changed unnoticed (D5, D6)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from gloveport.errors import StoreError
from gloveport.store import event_log
from gloveport.store.contents import digest
from gloveport.store.database import open_database
from gloveport.store.event_log import EventLog
from gloveport.store.reading import events, last_events, open_for_reading
from gloveport.store.verification import AuditReport, damaged_payloads, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "store.db"


def check(path: Path, head: str | None = None) -> AuditReport:
    connection = open_database(path)
    try:
        return verify(connection, head)
    finally:
        connection.close()


def rows(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def record(path: Path, count: int = 20) -> EventLog:
    log = EventLog(path)
    for number in range(count):
        log.append("call", {"number": number})
    await log.append_now("call", {"number": count})
    return log


async def test_events_are_kept_in_order_with_their_payloads(path: Path) -> None:
    log = EventLog(path)
    payload = b'{"amount":1}'
    for number in range(50):
        log.append("call", {"number": number}, {"args": payload})
    await log.append_now("write", {"number": 50})
    found = rows(path, "SELECT kind, body FROM events ORDER BY number")
    told = [json.loads(body)["number"] for kind, body in found if kind in ("call", "write")]
    assert told == list(range(51))
    assert rows(path, "SELECT content FROM payloads") == [(payload,)]
    await log.close()
    report = check(path)
    assert not report.problems
    assert report.events == 54  # with opened, linked and closed
    with pytest.raises(StoreError, match="closed"):
        log.append("late", {})


async def test_the_last_events_are_those_that_reading_all_ends_with(path: Path) -> None:
    log = EventLog(path)
    for number in range(400):
        about = {"run": f"r{number % 7}", "call": number // 7}
        log.append("call-started", {**about, "tool": f"shop.{number % 3}"})
        log.append("call-ended", {**about, "status": "ok"})
    await log.append_now("run-ended", {"run": "r1"})
    await log.close()
    filters: list[dict[str, Any]] = [{}, {"run": "r1"}, {"kind": "call-*"}, {"kind": "run-ended"}, {"tool": "shop.1"}]
    with closing(open_for_reading(path)) as connection:
        for which in (*filters, {"kind": "call-ended", "run": "r2"}, {"kind": "call-ended", "tool": "shop.2"}):
            before, last = None, list(events(connection, **which))
            for _ in range(3):
                page = last_events(connection, 30, before=before, **which)
                assert page == last[-30:], which
                last = last[:-30]
                if not last:
                    break
                before = (page[0].at, page[0].chain, page[0].number)


async def test_a_page_of_events_takes_the_same_however_many_there_are(path: Path) -> None:
    log = await record(path, 200)
    steps: list[int] = []
    for _ in range(2):
        with closing(open_for_reading(path)) as connection:
            steps.append(0)
            connection.set_progress_handler(lambda: steps.append(steps.pop() + 1), 50)
            assert len(last_events(connection, 20)) == 20
            connection.set_progress_handler(None, 0)
        for number in range(20_000):
            log.append("call", {"number": number})
        await log.append_now("call", {"number": 0})
    await log.close()
    assert 0 < steps[1] < steps[0] * 2


def test_only_its_owner_can_read_the_file(path: Path) -> None:
    open_database(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("statement", "number", "what"),
    [
        ("UPDATE events SET body = '{}' WHERE number = 7", 7, "changed"),
        ("UPDATE events SET kind = 'other' WHERE number = 7", 7, "changed"),
        ("UPDATE events SET at = at + 1 WHERE number = 7", 7, "changed"),
        ("UPDATE events SET hash = zeroblob(32) WHERE number = 7", 7, "changed"),
        ("DELETE FROM events WHERE number = 7", 7, "missing; the next one there is 8"),
        ("DELETE FROM events WHERE number < 3", 1, "missing; the next one there is 3"),
        ("UPDATE events SET number = -number", 1, "missing"),
        ("DELETE FROM events", 1, "missing; hosts have used this store"),
    ],
)
async def test_a_changed_or_removed_event_is_found_and_located(path: Path, statement: str, number: int, what: str) -> None:
    await (await record(path)).close()
    change(path, statement)
    problem = check(path).problems[0]
    assert problem.number == number
    assert problem.what.startswith(what)


async def test_events_that_change_places_are_found(path: Path) -> None:
    await (await record(path)).close()
    swap = [f"UPDATE events SET number = {new} WHERE number = {old}" for old, new in ((5, 999), (6, 5), (999, 6))]
    change(path, *swap)
    assert check(path).problems[0].number == 5


async def test_a_chain_that_lost_its_end_is_found_by_another_chain_or_by_a_head_that_was_noted(path: Path) -> None:
    first = await record(path)
    await first.close()
    head = check(path).heads[first.chain][1]
    change(path, f"DELETE FROM events WHERE chain = '{first.chain}' AND number > 10")
    assert not check(path).problems  # nothing else refers to it yet
    assert "changed or cut off" in check(path, head).problems[0].what


async def test_another_host_notes_the_heads_of_the_chains_that_it_finds(path: Path) -> None:
    first = await record(path)
    await first.close()
    await (await record(path)).close()
    assert not check(path).problems
    change(path, f"DELETE FROM events WHERE chain = '{first.chain}' AND number > 10")
    problem = check(path).problems[0]
    assert (problem.chain, problem.what.partition(";")[0]) == (first.chain, "missing")


async def test_a_host_that_ends_notes_what_another_one_wrote_meanwhile(path: Path) -> None:
    """So the end of a host that was killed is known as soon as one of its neighbours ends."""
    neighbour = await record(path)
    killed = await record(path)
    await neighbour.close()
    change(path, f"DELETE FROM events WHERE chain = '{killed.chain}' AND number > 10")
    problem = check(path).problems[0]
    assert (problem.chain, problem.what.partition(";")[0]) == (killed.chain, "missing")
    await killed.close()


async def test_a_chain_that_was_removed_or_written_anew_is_found_by_the_chains_that_refer_to_it(path: Path) -> None:
    first = await record(path)
    await first.close()
    await (await record(path)).close()
    head = check(path).heads[first.chain][1]
    kept = rows(path, f"SELECT number, at, kind, body FROM events WHERE chain = '{first.chain}' ORDER BY number")
    change(path, f"DELETE FROM events WHERE chain = '{first.chain}'")
    assert [(one.chain, one.number) for one in check(path).problems] == [(first.chain, kept[-1][0])]
    connection, before = sqlite3.connect(path), event_log.GENESIS
    for number, at, kind, recorded in kept:
        body = recorded.replace('"number":7', '"number":8')
        before = event_log.event_hash(before, event_log.EventPlace(first.chain, number, at, kind), body.encode())
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (first.chain, number, at, kind, body, before))
    connection.commit()
    connection.close()
    (problem,) = check(path).problems
    assert "not the one to which" in problem.what
    assert len(check(path, head).problems) == 2


def test_a_store_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(path).close()
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StoreError, match="belongs to another user"):
        open_database(path)


@pytest.mark.parametrize("target", ["missing", "/dev/null", "store.db"])
def test_a_link_that_leads_to_no_store_is_refused(path: Path, target: str) -> None:
    path.parent.mkdir()
    path.symlink_to(target)
    with pytest.raises(StoreError):
        open_database(path)


async def test_deleted_payloads_leave_the_chain_intact_and_changed_ones_are_found(path: Path) -> None:
    log = EventLog(path)
    await log.append_now("call", {}, {"args": b"a", "result": b"b"})
    await log.close()
    change(path, "DELETE FROM payloads WHERE content = x'61'")
    assert not check(path).problems
    change(path, "UPDATE payloads SET content = x'63'")
    connection = open_database(path)
    assert damaged_payloads(connection) == (digest(b"b").hex(),)
    connection.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from gloveport.store.event_log import EventLog
async def main():
    log = EventLog(Path(sys.argv[1]))
    for number in range(10**9 if sys.argv[2] == "endless" else int(sys.argv[2])):
        await log.append_now("write", {"number": number})
        print(number, flush=True)
    await log.close()
asyncio.run(main())
"""


def writer(path: Path, count: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), count], stdout=subprocess.PIPE, text=True)


@pytest.mark.integration
def test_four_hosts_write_at_once_and_one_that_is_killed_loses_nothing_that_it_had_reported(path: Path) -> None:
    hosts = [writer(path, "150") for _ in range(3)]
    with writer(path, "endless") as victim:
        assert victim.stdout is not None
        told = [victim.stdout.readline() for _ in range(40)]
        os.kill(victim.pid, signal.SIGKILL)
        told += [line for line in victim.stdout if line.endswith("\n")]
    for host in hosts:
        out, _ = host.communicate(timeout=120)
        assert (host.returncode, len(out.split())) == (0, 150)
    report = check(path)
    assert not report.problems
    assert len(report.heads) == 4
    written: dict[str, int] = {}
    for chain, body in rows(path, "SELECT chain, body FROM events WHERE kind = 'write' ORDER BY chain, number"):
        assert json.loads(body)["number"] == written.get(chain, 0)
        written[chain] = written.get(chain, 0) + 1
    others = sorted(written.values())
    others.remove(150), others.remove(150), others.remove(150)
    assert others[0] >= len(told)


async def test_while_the_file_is_locked_writes_are_refused_and_other_events_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.store.database.LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(event_log, "RETRY_SECONDS", 0.01)
    log = await record(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    log.append("read", {"number": 1})
    with pytest.raises(StoreError, match="locked") as caught:
        await log.append_now("write", {})
    assert "another program" in (caught.value.hint or "")
    holder.execute("ROLLBACK")
    holder.close()
    await log.append_now("write", {"number": 2})
    await log.close()
    assert rows(path, "SELECT kind FROM events ORDER BY number")[-3:] == [("read",), ("write",), ("closed",)]
    assert not check(path).problems


async def test_when_the_disk_is_full_writes_are_refused(path: Path) -> None:
    log = await record(path)
    log._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match="full") as caught:
        while True:
            await log.append_now("write", {"text": "x" * 5000})
    assert "free some space" in (caught.value.hint or "")
    log._connection.execute("PRAGMA max_page_count = 1000000")
    await log.append_now("write", {"text": "again"})
    await log.close()
    assert not check(path).problems


async def test_events_that_could_not_be_kept_are_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gloveport.store.database.LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(event_log, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(event_log, "MAX_WAITING_ITEMS", 10)
    log = EventLog(path)
    await log.append_now("call", {})
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    for number in range(100):
        log.append("read", {"number": number})
    holder.execute("ROLLBACK")
    holder.close()
    await log.append_now("write", {})
    await log.close()
    found = rows(path, "SELECT kind, body FROM events ORDER BY number")
    lost = sum(json.loads(body)["events"] for kind, body in found if kind == "lost")
    assert lost + sum(kind == "read" for kind, _ in found) == 100
    assert lost > 0


async def test_an_event_that_cannot_be_recorded_is_refused_and_counted(path: Path) -> None:
    log, no_payload = EventLog(path), cast(Any, b"content without a digest")
    with pytest.raises(StoreError):
        await log.append_now("call", {"number": 1}, [no_payload])
    await log.append_now("call", {"number": 2})
    await log.close()
    bodies = [json.loads(body) for _, body in rows(path, "SELECT kind, body FROM events WHERE kind IN ('lost', 'call')")]
    assert bodies == [{"events": 2}, {"number": 2}]
    assert not check(path).problems


async def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    await (await record(path)).close()
    change(path, "PRAGMA user_version = 99")
    log = EventLog(path)
    with pytest.raises(StoreError, match="newer version"):
        await log.append_now("write", {})
    await log.close()


@pytest.fixture
def no_store(path: Path) -> Path:
    path.parent.mkdir()
    path.write_bytes(b"this is a text, and no database at all" * 100)
    return path


async def test_a_file_that_is_no_store_is_refused_with_what_to_do(no_store: Path) -> None:
    path = no_store
    log = EventLog(path)
    log.append("read", {})  # goes on without the store
    with pytest.raises(StoreError, match="not a database") as caught:
        await log.append_now("write", {})
    assert "move the file away" in (caught.value.hint or "")
    await log.close()


async def test_many_writers_in_one_host_share_commits(path: Path) -> None:
    log = EventLog(path)
    await asyncio.gather(*(log.append_now("write", {"number": number}) for number in range(500)))
    await log.close()
    assert check(path).events == 503


async def test_an_event_that_cannot_be_written_refuses_its_batch_and_stops_no_other(path: Path) -> None:
    log = EventLog(path)
    with pytest.raises(StoreError, match="can't be recorded"):
        await log.append_now("call", {"value": object()})
    await log.append_now("call", {"value": 1})
    await log.close()
    kinds = [kind for (kind,) in rows(path, "SELECT kind FROM events ORDER BY number")]
    assert "call" in kinds
    assert "lost" in kinds
