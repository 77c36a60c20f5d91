"""The runs in the store: found, listed, taken over by the host that goes on with one, cancelled."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import orjson

from gloveport.errors import OptionError
from gloveport.store.contents import StoredContent, join_step, keep_contents, split_step
from gloveport.store.database import StoreFile
from gloveport.store.encryption import StoreConnection, about
from gloveport.store.process_mark import lives
from gloveport.store.reading import find_content
from gloveport.store.sessions import add_workspace, recorded_workspace
from gloveport.types import Recording, RunStatus

_COLUMNS = "runs.id, agent, status, started, ended, language, engine, calls, error, obstacle, fence, host, process, seen"
_OWNERS = "LEFT JOIN hosts ON hosts.chain = runs.host"
_FROM = f"FROM runs {_OWNERS}"
_CALLS = "FROM json_each(?) AS named CROSS JOIN run_tools ON tool = named.value"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
RUN_ID_HINT = "letters, digits, `_`, `-` and `.`, at most 64, with a letter or a digit first"
IMPORTED = "imported"
"""The obstacle of a run that another machine has made: it can be shown and replayed, and never goes on."""
MAX_RARE_RUNS = 5000
"""Up to so many runs of a tool are found by the tool. Beyond, the latest runs are looked at until enough have called it."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as lists show it. Times are seconds since 1970. `owned` if a process that lives has it.

    `obstacle` is why it can't be resumed.
    """

    id: str
    agent: str
    status: RunStatus
    started: float
    ended: float | None
    language: str
    engine: str
    calls: int
    error: str | None
    obstacle: str | None
    fence: int
    owned: bool

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.status in ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class StoredRun(ListedRun):
    """A run in the store: also what it takes to go on with it, and what its steps don't tell about its end."""

    request: Mapping[str, Any]
    outcome: Mapping[str, Any] | None

    @property
    def has_begun(self) -> bool:
        """Whether it has a program. Until then, the store has its id alone."""
        return "code" in self.request


class StoredRuns(StoreFile):
    """The runs in the store at a path. Each method is one transaction; call them in a thread beside an event loop."""

    def find(self, id: str, agent: str | None = None) -> StoredRun:
        """Return a run by its id, or by the beginning of it that only one has; raise OptionError.

        With an agent, the runs of other agents are not there, and nothing that is said depends on them.
        """
        sql = f"SELECT {_COLUMNS}, request, outcome {_FROM} WHERE (? IS NULL OR agent = ?) AND runs.id"
        with self.reading() as connection:
            rows = connection.execute(f"{sql} = ?", (agent, agent, id)).fetchall()
            if not rows and id:
                given = (agent, agent, id, id + "\U0010ffff")
                rows = connection.execute(f"{sql} > ? AND runs.id < ? LIMIT 2", given).fetchall()
        if len(rows) != 1:
            problem = "more than one run begins with" if rows else "there is no run"
            hint = "`gloveport runs` lists them" if agent is None else "a run belongs to the agent that started it"
            raise OptionError(f"{problem} {id[:40]!r}", hint=hint)
        *listed, request, outcome = rows[0]
        return StoredRun(
            *_listed(listed),
            request=orjson.loads(self._unsealed(request, "request", listed[0])),
            outcome=None if outcome is None else orjson.loads(self._unsealed(outcome, "outcome", listed[0])),
        )

    def latest(
        self,
        *,
        limit: int = 50,
        statuses: tuple[RunStatus, ...] = (),
        tool: str | None = None,
        agent: str | None = None,
        search: str = "",
        since: float = 0,
        before: tuple[int, str] | None = None,
    ) -> list[ListedRun]:
        """Return the latest runs, the latest first. `tool` is an address, or a pattern of addresses.

        `search` is the beginning of an id, or a part of the name of the agent or of the code of the error. With `before`,
        those that come after the run that started then (microseconds since 1970) and has this id.
        """
        where = ["started >= ?"]
        given: list[Any] = [int(since * 1e6)]
        if statuses:
            where.append(f"status IN ({', '.join('?' * len(statuses))})")
            given += statuses
        if agent is not None:
            where.append("agent = ?")
            given.append(agent)
        if search:
            where.append("(instr(lower(runs.id), ?) = 1 OR instr(lower(agent), ?) OR instr(lower(ifnull(error, '')), ?))")
            given += [search.lower()] * 3
        if before is not None:
            where.append("started <= ? AND (started < ? OR runs.id < ?)")
            given += (before[0], *before)
        is_rare = False
        with self.reading() as connection:
            if tool is not None:
                names, is_rare = _called(connection, tool)
                given.append(names)
                # With `+`, SQLite uses no index for a condition: a few runs are found by the tool alone.
                where = [f"+{one}" for one in where] if is_rare else where
                where.append(
                    f"runs.id IN (SELECT run {_CALLS})" if is_rare else f"EXISTS (SELECT 1 {_CALLS} AND run = runs.id)"
                )
            order = "+started" if is_rare else "started"
            chosen = f"SELECT * FROM runs WHERE {' AND '.join(where)} ORDER BY {order} DESC, runs.id DESC LIMIT ?"
            sql = f"SELECT {_COLUMNS} FROM ({chosen}) AS runs {_OWNERS} ORDER BY started DESC, runs.id DESC"
            return [ListedRun(*_listed(row)) for row in connection.execute(sql, (*given, limit))]

    def recording(self, run: StoredRun) -> Recording:
        """Return the steps of a run; raise OptionError if they are not kept."""
        steps = self.steps(run)
        with self.reading() as connection:
            workspace = recorded_workspace(connection, run.request)
        agent = None if run.obstacle == IMPORTED else run.agent
        return Recording(run.id, run.engine, int(run.request.get("memory_mb", 0)), tuple(steps), agent, workspace)

    def steps(self, run: StoredRun, most: int = -1) -> list[tuple[str, bytes]]:
        """Return the steps of a run, or the first ones; raise OptionError if they are not kept."""
        sql = "SELECT sender, content, tail, number FROM run_steps WHERE run = ? ORDER BY number LIMIT ?"
        steps: list[tuple[str, bytes]] = []
        with self.reading() as connection:
            for sender, kept, tail, number in connection.execute(sql, (run.id, most)):
                content = connection.unseal(kept, about("run_steps", "content", run.id, number))
                if tail is not None:
                    found = find_content(connection, tail)
                    if found is None:
                        raise OptionError(f"a result that the run {run.id} received was deleted", code="not-resumable")
                    content = join_step(content, found)
                steps.append((sender, content))
        return steps

    def code(self, run: StoredRun) -> str:
        """Return the program of a run as the agent wrote it; raise OptionError if it is not kept."""
        if not run.has_begun:
            raise OptionError(f"the run {run.id} has not begun", hint="look again in a moment", code="not-resumable")
        with self.reading() as connection:
            found = find_content(connection, bytes.fromhex(run.request["code"]))
        if found is None:
            raise OptionError(f"the program of the run {run.id} was deleted", code="not-resumable")
        return found.decode("utf-8", "surrogatepass")

    def programs(self, ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the programs of runs, each with its run. Those that are not kept are left out."""
        with self.reading() as connection:
            for id in ids:
                row = connection.execute("SELECT code FROM runs WHERE id = ?", (id,)).fetchone()
                found = find_content(connection, bytes.fromhex(row[0])) if row is not None and row[0] else None
                if found is not None:
                    yield id, found.decode("utf-8", "surrogatepass")

    def tools(self, run: ListedRun) -> tuple[str, ...]:
        """Return the tools that a run has called."""
        sql = "SELECT tool FROM run_tools WHERE run = ? AND tool = ?"
        with self.reading() as connection:
            return tuple(name for name in _all_tools(connection) if connection.execute(sql, (run.id, name)).fetchone())

    def add(self, run: StoredRun, code: str, recording: Recording, tools: Iterable[str]) -> None:
        """Add a run that has ended elsewhere, as a whole; raise OptionError if its id is taken."""
        program = StoredContent.of(code.encode("utf-8", "surrogatepass"))
        contents = [program]
        steps: list[tuple[Any, ...]] = []
        for number, (sender, content) in enumerate(recording.steps, 1):
            head, tail = split_step(content)
            contents += [tail] if tail is not None else []
            steps.append((number, sender, head, tail.digest if tail is not None else None))
        request: dict[str, Any] = {**run.request, "code": program.digest.hex()}
        with self.writing() as connection:
            if connection.execute("SELECT 1 FROM runs WHERE id = ?", (run.id,)).fetchone():
                raise id_taken(run.id)
            if (workspace := recording.workspace) is not None:
                request["snapshot"] = add_workspace(connection, workspace)
                request["workspace"] = [workspace.max_bytes, workspace.max_files, workspace.path]
            _insert(connection, run, request)
            for number, *step, head, tail in steps:
                sealed = connection.seal(head, about("run_steps", "content", run.id, number))
                connection.execute("INSERT INTO run_steps VALUES (?, ?, ?, ?, ?)", (run.id, number, *step, sealed, tail))
            connection.executemany("INSERT OR IGNORE INTO run_tools VALUES (?, ?)", ((tool, run.id) for tool in tools))
            keep_contents(connection, contents)

    def requests(self, run: StoredRun) -> dict[str, int]:
        """Return the ids of the requests of a run that wait for an answer, each with its call."""
        sql = "SELECT id, call FROM approvals WHERE run = ? AND state = 'waiting' AND expires > ? ORDER BY call"
        with self.reading() as connection:
            return dict(connection.execute(sql, (run.id, time.time())).fetchall())

    def has_asked(self, run: StoredRun) -> bool:
        """Return whether a call of the run has asked a person, as far as the store still knows."""
        with self.reading() as connection:
            return connection.execute("SELECT 1 FROM approvals WHERE run = ? LIMIT 1", (run.id,)).fetchone() is not None

    def take(self, run: StoredRun, chain: str) -> int | None:
        """Make a host the owner of a run that nobody owns, and return its fence; None if another one was faster."""
        with self.writing() as connection:
            changed = connection.execute(
                "UPDATE runs SET host = ?, fence = fence + 1, status = 'running' WHERE id = ? AND fence = ?"
                " AND status IN ('running', 'waiting')",
                (chain, run.id, run.fence),
            )
            return run.fence + 1 if changed.rowcount == 1 else None

    def give_back(self, run: StoredRun, chain: str) -> None:
        """Leave a run as it was before it was taken."""
        with self.writing() as connection:
            connection.execute(
                "UPDATE runs SET host = NULL, status = ? WHERE id = ? AND host = ?", (run.status, run.id, chain)
            )

    def ask_to_cancel(self, run: StoredRun, who: str) -> None:
        """Ask the host that owns a run to end it."""
        with self.writing() as connection:
            connection.execute("UPDATE runs SET cancel_asked = ? WHERE id = ? AND host IS NOT NULL", (who, run.id))

    def asked_to_cancel(self, chain: str) -> dict[str, str]:
        """Return the runs that a host owns and is asked to end, and who asks."""
        sql = "SELECT id, cancel_asked FROM runs WHERE host = ? AND cancel_asked IS NOT NULL"
        with self.reading() as connection:
            return dict(connection.execute(sql, (chain,)).fetchall())

    def steps_after(self, run: ListedRun, number: int) -> list[tuple[int, str, bytes]]:
        """Return steps of a run after a number, a few at a time: number, sender and content. A large result is left out."""
        sql = "SELECT number, sender, content FROM run_steps WHERE run = ? AND number > ? ORDER BY number LIMIT 1000"
        with self.reading() as connection:
            rows = connection.execute(sql, (run.id, number)).fetchall()
            places = (about("run_steps", "content", run.id, found) for found, _, _ in rows)
            return [(row[0], row[1], connection.unseal(row[2], place)) for row, place in zip(rows, places, strict=True)]

    def _unsealed(self, kept: bytes, column: str, run: str) -> bytes:
        with self.reading() as connection:
            return connection.unseal(kept, about("runs", column, run))

    def cancel(self, run: StoredRun, calls: int = 0) -> bool:
        """Cancel a run that nobody owns; return False if it was not cancelled because it changed meanwhile.

        `calls` is the number of its calls, which a host that died could not note.
        """
        with self.writing() as connection:
            changed = connection.execute(
                "UPDATE runs SET status = 'cancelled', ended = ?, calls = max(calls, ?), host = NULL, fence = fence + 1"
                " WHERE id = ? AND fence = ? AND status IN ('running', 'waiting')",
                (time.time_ns() // 1000, calls, run.id, run.fence),
            )
            connection.execute("UPDATE approvals SET state = 'withdrawn' WHERE run = ? AND state = 'waiting'", (run.id,))
            return changed.rowcount == 1


def _called(connection: sqlite3.Connection, pattern: str) -> tuple[str, bool]:
    """Return the tools of a pattern that runs have called, as JSON, and whether only a few runs have."""
    names = orjson.dumps([name for name in _all_tools(connection) if fnmatchcase(name, pattern)]).decode()
    (count,) = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 {_CALLS} LIMIT {MAX_RARE_RUNS + 1})", (names,)
    ).fetchone()
    return names, count <= MAX_RARE_RUNS


def _all_tools(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the tools that runs have called. Each is found by one step in the index, however many runs there are."""
    last = ""
    while row := connection.execute("SELECT tool FROM run_tools WHERE tool > ? LIMIT 1", (last,)).fetchone():
        (last,) = row
        yield last


def _insert(connection: StoreConnection, run: StoredRun, request: Mapping[str, Any]) -> None:
    row: dict[str, Any] = {
        "id": run.id,
        "agent": run.agent,
        "status": run.status,
        "fence": run.fence,
        "started": int(run.started * 1e6),
        "ended": int((run.ended or run.started) * 1e6),
        "language": run.language,
        "engine": run.engine,
        "calls": run.calls,
        "error": run.error,
        "obstacle": run.obstacle,
        "request": connection.seal(orjson.dumps(request), about("runs", "request", run.id)),
        "code": request["code"],
        "snapshot": bytes.fromhex(request["snapshot"]) if "snapshot" in request else None,
    }
    if run.outcome is not None:
        row["outcome"] = connection.seal(orjson.dumps(run.outcome), about("runs", "outcome", run.id))
    connection.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values()))


def id_taken(run: str) -> OptionError:
    """Return the error for an id that another run has."""
    return OptionError(f"there is a run {run[:40]!r} already", code="run-id-taken")


def _listed(row: Any) -> tuple[Any, ...]:
    """Return the fields of a run of which a row has the columns."""
    id, agent, status, started, ended, *about, fence, host, process, seen = row
    owned = host is not None and process is not None and lives(process, seen)
    return id, agent, status, started / 1e6, None if ended is None else ended / 1e6, *about, fence, owned
