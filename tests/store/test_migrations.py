"""Stores that earlier versions wrote: each is migrated, verified, and used (R6).

`versions/N.sql` is a store that the code of schema version N wrote: from version 2 on, a run that has ended, and one that waits.
"""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.store.database import MIGRATIONS, open_database
from gloveport.store.event_log import EventLog
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.verification import damaged_payloads, verify

VERSIONS = Path(__file__).parent / "versions"
DURABLE = 3  # the first version that kept runs


def made(version: int, folder: Path) -> Path:
    path = folder / "store.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((VERSIONS / f"{version}.sql").read_text())
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    return path


def test_every_version_has_a_store() -> None:
    kept = {int(file.stem) for file in VERSIONS.glob("*.sql")}
    assert kept == set(range(1, len(MIGRATIONS)))


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
async def test_a_store_of_an_earlier_version_is_migrated_and_goes_on(version: int, tmp_path: Path) -> None:
    path = made(version, tmp_path)
    log = EventLog(path)
    await log.append_now("call", {"number": 1}, {"args": b'{"n":1}'})
    await log.close()
    with closing(open_database(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        report = verify(connection)
        assert (report.problems, damaged_payloads(connection)) == ((), ())
        assert len(report.heads) == 2
        asked = connection.execute("SELECT count(*) FROM approvals WHERE state = 'waiting'").fetchone()
        assert asked == ((1,) if version >= DURABLE else (0,))
    with closing(StoredRuns(path)) as stored:
        runs = stored.latest()
        assert [run.status for run in runs] == (["waiting", "completed"] if version >= DURABLE else [])
        for run in map(stored.find, (run.id for run in runs)):
            assert "tools.look" in stored.code(run)
            assert len(stored.recording(run).steps) >= 3
        assert len(stored.latest(tool="local.look")) == len(runs)


@pytest.mark.integration
async def test_a_run_that_waited_in_an_earlier_version_is_replayed(tmp_path: Path) -> None:
    from gloveport import Gloveport

    path = made(DURABLE, tmp_path)
    async with Gloveport(store=path, spare=0) as port:
        with closing(StoredRuns(path)) as stored:
            runs = [run.id for run in stored.latest()]
        for run in runs:
            found = await port.replay(run)
            assert found is None or not found.fatal


def test_several_threads_open_a_new_store_at_once(tmp_path: Path) -> None:
    for attempt in range(100):
        start = threading.Barrier(4)

        def open_and_close(path: Path, start: threading.Barrier) -> None:
            start.wait(60)
            open_database(path).close()

        with ThreadPoolExecutor(4) as threads:
            path = tmp_path / f"{attempt}.sqlite"
            for done in [threads.submit(open_and_close, path, start) for _ in range(4)]:
                done.result()
