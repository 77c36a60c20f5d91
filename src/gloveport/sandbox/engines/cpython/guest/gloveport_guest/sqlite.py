"""Give SQLite the run's clock and randomness: `datetime('now')`, `CURRENT_TIMESTAMP`, `random()`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from .clock import HAS_WORKSPACE, MICROS, Clock
from .randomness import Randomness

DATES = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
CURRENT = {"current_timestamp": "datetime", "current_date": "date", "current_time": "time"}


def patch_sqlite(clock: Clock, randomness: Randomness) -> None:
    """Make every new connection use the run's clock and randomness."""
    connect = sqlite3.connect

    def dated(name: str, plain: sqlite3.Connection) -> Callable[..., Any]:
        """Return SQLite's function with the clock's time for `now`, which is also the default."""
        least = 2 if name == "strftime" else 1

        def call(*args: Any) -> Any:
            given = [*args, "now"] if len(args) == least - 1 else args
            moment = (clock.read() // 1000) * 1000 / MICROS
            at = plain.execute("SELECT strftime('%Y-%m-%d %H:%M:%f', ?, 'unixepoch')", (moment,)).fetchone()[0]
            values = [at if isinstance(item, str) and item.lower() == "now" else item for item in given]
            return plain.execute(f"SELECT {name}({','.join('?' * len(values))})", values).fetchone()[0]

        return call

    def connect_turned(database: Any, *args: Any, **options: Any) -> Any:
        if HAS_WORKSPACE and not args[6:] and database not in (":memory:", ""):
            database = _without_locks(os.fsdecode(database), is_uri=options.get("uri", False))
            options["uri"] = True
        opened, plain = connect(database, *args, **options), connect(":memory:", check_same_thread=False)
        for name in DATES:
            opened.create_function(name, -1, dated(name, plain), deterministic=True)
        for name, like in CURRENT.items():
            opened.create_function(name, 0, dated(like, plain))
        opened.create_function("random", 0, lambda: randomness.integer(64) - 2**63)
        opened.create_function("randomblob", 1, lambda size: randomness.bytes(max(1, size)))
        return opened

    sqlite3.connect = sqlite3.dbapi2.connect = connect_turned


def _without_locks(database: str, *, is_uri: bool) -> str:
    """Return the URI of a database that is opened without locks: no other process sees a workspace, and none are allowed."""
    if not is_uri or not database.startswith("file:"):
        return f"file:{quote(database)}?vfs=unix-none"
    return database if "vfs=" in database else f"{database}{'&' if '?' in database else '?'}vfs=unix-none"
