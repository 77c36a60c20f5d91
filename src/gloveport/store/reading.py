"""Reads the events of a store, without changing the file. Nothing in it is trusted: somebody may have edited it."""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import translate
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from gloveport.errors import StoreError
from gloveport.store.contents import restored
from gloveport.store.database import LOCK_TIMEOUT_SECONDS, hint_for, no_access
from gloveport.store.encryption import StoreConnection, about

MAX_NAMING_ROWS = 2000  # that are read for the name of a call's tool
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as the file has it; `at` is microseconds since 1970. `raw` is its body where that is no JSON object.

    `tool` is the tool of the call that it is about, also where only an earlier event of that call names it.
    """

    chain: str
    number: int
    at: int
    kind: str
    hash: str
    body: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    tool: str | None = None

    @property
    def run(self) -> str:
        """The run that it belongs to; empty for one of the host itself."""
        return str(self.body.get("run", ""))


def there_is(path: Path) -> bool:
    """Return whether a store is there; raise StoreError where this user may not look."""
    try:
        return path.is_file()
    except OSError as error:
        raise no_access(path, error) from None


def open_for_reading(path: Path) -> StoreConnection:
    """Return a connection that can only read; raise StoreError where there is no store."""
    if not there_is(path):
        raise StoreError(f"there is no store {path}", hint="the first run that is recorded creates it")
    try:
        where = f"file:{quote(str(path))}?mode=ro"
        connection = sqlite3.connect(where, timeout=LOCK_TIMEOUT_SECONDS, uri=True, factory=StoreConnection)
    except sqlite3.Error as error:
        raise StoreError(f"the store {path} can't be opened: {error}", hint=hint_for(error)) from None
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    try:
        connection.execute("SELECT 1 FROM events LIMIT 1").fetchone()
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"{path} can't be read as a store: {error}", hint=hint_for(error)) from None
    return connection


def events(
    connection: sqlite3.Connection,
    *,
    run: str = "",
    tool: str | None = None,
    kind: str | None = None,
    since: int = 0,
    before: tuple[int, str, int] | None = None,
) -> Iterator[StoredEvent]:
    """Yield the events of runs whose id begins with `run`, of tools and kinds that patterns cover, since a time, in order.

    With `before`, those before the event that has this time, chain and number.
    """
    wanted, kinds = _pattern(tool), _pattern(kind)
    named: dict[tuple[str, Any], str] = {}
    for row in _rows(connection, run, since, before):
        event = _event(row, named)
        is_wanted = wanted is None or (event.tool is not None and wanted.match(event.tool))
        if is_wanted and event.run.startswith(run) and (kinds is None or kinds.match(event.kind)):
            yield event


def last_events(
    connection: sqlite3.Connection,
    limit: int,
    *,
    run: str = "",
    tool: str | None = None,
    kind: str | None = None,
    since: int = 0,
    before: tuple[int, str, int] | None = None,
) -> list[StoredEvent]:
    """Return the last of the events that `events` yields, in their order.

    Where no tool is wanted, no more rows are read than that takes. Then an event may lack the tool of its call, if that
    was named long before.
    """
    if tool is not None:
        found = events(connection, run=run, tool=tool, kind=kind, since=since, before=before)
        return list(deque(found, maxlen=limit))
    rows = _rows(connection, run, since, before, kind=kind or "*", order="DESC")
    latest = (event for row in rows if (event := _event(row, {})).run.startswith(run))
    return _with_tools(connection, list(islice(latest, limit))[::-1])


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else re.compile(translate(text))


def _rows(
    connection: sqlite3.Connection,
    run: str,
    since: int,
    before: tuple[int, str, int] | None,
    *,
    kind: str = "*",
    order: str = "ASC",
) -> Iterator[tuple[Any, ...]]:
    # Only rows that can belong to the run are decoded: the file may be large.
    sql = (
        "SELECT chain, number, at, kind, hash, body FROM events"
        " WHERE at >= ? AND kind GLOB ? AND (? = '' OR instr(body, ?)) AND (at, chain, number) < (?, ?, ?)"
        f" ORDER BY at {order}, chain {order}, number {order}"
    )
    return connection.execute(sql, (since, kind, run, f'"run":"{run}', *(before or (2**62, "", 0))))


def _with_tools(connection: sqlite3.Connection, found: list[StoredEvent]) -> list[StoredEvent]:
    """Return events with the tools of their calls, as far as one of the events shortly before them names it."""
    named = {_call_of(event.body): event.tool for event in found if event.tool is not None}
    runs = {event.run: event.at for event in found if "call" in event.body and _call_of(event.body) not in named}
    near = "SELECT chain, number, at, kind, hash, body FROM events WHERE at <= ? ORDER BY at DESC LIMIT ?"
    for run, at in runs.items():
        about = (at, MAX_NAMING_ROWS, f'"run":"{run}"')
        for row in connection.execute(f"SELECT * FROM ({near}) WHERE instr(body, ?)", about):
            _event(row, named)
    return [
        replace(event, tool=named.get(_call_of(event.body))) if event.tool is None and "call" in event.body else event
        for event in found
    ]


def _call_of(body: Mapping[str, Any]) -> tuple[str, Any]:
    return str(body.get("run")), str(body.get("call"))


def _event(row: tuple[Any, ...], named: dict[tuple[str, Any], str]) -> StoredEvent:
    chain, number, at, kind, hash_, body = row
    raw = body if isinstance(body, str) else repr(body)
    try:
        found = orjson.loads(raw.encode("utf-8", "surrogateescape"))
    except ValueError:
        found = None
    fields = found if isinstance(found, dict) else {}
    tool, call = fields.get("tool"), _call_of(fields)
    if isinstance(tool, str):
        named[call] = tool
    shown = hash_.hex() if isinstance(hash_, bytes) else repr(hash_)
    moment = at if isinstance(at, int) else 0
    return StoredEvent(
        str(chain), number, moment, str(kind), shown, fields, None if isinstance(found, dict) else raw, named.get(call)
    )


def payloads(connection: StoreConnection, event: StoredEvent) -> dict[str, bytes]:
    """Return the contents to which an event refers by their digests; retention may have deleted them."""
    found: dict[str, bytes] = {}
    for key, value in event.body.items():
        if isinstance(value, str) and DIGEST.fullmatch(value):
            content = find_content(connection, bytes.fromhex(value))
            if content is not None:
                found[key] = content
    return found


def find_content(connection: StoreConnection, name: bytes) -> bytes | None:
    """Return a content by its digest; None if retention has deleted it."""
    row = connection.execute("SELECT content, form FROM payloads WHERE digest = ?", (name,)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        return None
    return restored(connection.unseal(row[0], about("payloads", "content", name)), row[1])
