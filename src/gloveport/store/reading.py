"""Reads the events of a store, without changing the file. Nothing in it is trusted: somebody may have edited it."""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from gloveport.errors import StoreError
from gloveport.store.contents import restored
from gloveport.store.database import LOCK_TIMEOUT_SECONDS, hint_for
from gloveport.store.encryption import StoreConnection, about

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


def open_for_reading(path: Path) -> StoreConnection:
    """Return a connection that can only read; raise StoreError where there is no store."""
    if not path.is_file():
        raise StoreError(f"there is no store {path}", hint="the first run that is recorded creates it")
    try:
        where = f"file:{quote(str(path))}?mode=ro"
        connection = sqlite3.connect(where, LOCK_TIMEOUT_SECONDS, uri=True, factory=StoreConnection)
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
    since: int = 0,
    before: tuple[int, str, int] | None = None,
) -> Iterator[StoredEvent]:
    """Yield the events of runs whose id begins with `run`, of tools that a pattern covers, since a time; in their order.

    With `before`, those before the event that has this time, chain and number.
    """
    wanted = re.compile(translate(tool)) if tool is not None else None
    named: dict[tuple[str, Any], str] = {}
    # Only rows that can belong to the run are decoded: the file may be large.
    rows = connection.execute(
        "SELECT chain, number, at, kind, hash, body FROM events"
        " WHERE at >= ? AND (? = '' OR instr(body, ?)) AND (at, chain, number) < (?, ?, ?) ORDER BY at, chain, number",
        (since, run, f'"run":"{run}', *(before or (2**62, "", 0))),
    )
    for row in rows:
        event = _event(row, named)
        if event.run.startswith(run) and (wanted is None or (event.tool is not None and wanted.match(event.tool))):
            yield event


def last_events(connection: sqlite3.Connection, limit: int, **which: Any) -> list[StoredEvent]:
    """Return the last of the events that `events` yields, in their order."""
    return list(deque(events(connection, **which), maxlen=limit))


def _event(row: tuple[Any, ...], named: dict[tuple[str, Any], str]) -> StoredEvent:
    chain, number, at, kind, hash_, body = row
    raw = body if isinstance(body, str) else repr(body)
    try:
        found = orjson.loads(raw.encode("utf-8", "surrogateescape"))
    except ValueError:
        found = None
    fields = found if isinstance(found, dict) else {}
    tool, call = fields.get("tool"), (str(fields.get("run")), str(fields.get("call")))
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
