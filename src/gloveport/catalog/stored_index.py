"""A search index on disk: a fresh process searches thousands of tools without reading their definitions.

One SQLite file: the tools, and for each word the tools that have it with their weights. It is written under a temporary
name, renamed when it is complete, and never changed after that. A damaged file counts as missing.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from array import array
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from gloveport.catalog.search import Scores, WordIndex

_TABLES = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE tools (address TEXT, description TEXT, kind TEXT, writes INTEGER, suspended INTEGER);
CREATE TABLE words (word TEXT PRIMARY KEY, tools BLOB, weights BLOB) WITHOUT ROWID;
"""


class StoredTool(NamedTuple):
    """A tool as a list of tools shows it; `description` is its first line."""

    address: str
    description: str
    kind: str
    writes: bool
    suspended: bool

    @property
    def source(self) -> str:
        """The name of the source."""
        return self.address.partition(".")[0]


def store_index(path: Path, tools: Sequence[StoredTool], words: WordIndex) -> None:
    """Write an index; a disk that is full or read-only is no error, because the index can be built again."""
    draft = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(draft, isolation_level=None)) as database:
            database.executescript(_TABLES)
            database.execute("BEGIN")
            database.executemany("INSERT INTO tools VALUES (?, ?, ?, ?, ?)", tools)
            rows = (
                (word, array("I", found).tobytes(), array("f", found.values()).tobytes())
                for word, found in words.by_word.items()
            )
            database.executemany("INSERT INTO words VALUES (?, ?, ?)", rows)
            database.execute("COMMIT")
        draft.replace(path)
    except (OSError, sqlite3.Error):
        return
    finally:
        with suppress(OSError):
            draft.unlink()


def load_index(path: Path) -> tuple[list[StoredTool], StoredPostings] | None:
    """Return the tools and the postings in this file; None where there are none that can be read."""
    if not path.is_file():
        return None
    try:
        database = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        postings = StoredPostings(database)
        return list(map(StoredTool._make, database.execute("SELECT * FROM tools ORDER BY rowid"))), postings
    except (sqlite3.Error, ValueError, TypeError):
        with suppress(OSError):
            path.unlink()
        return None


class StoredPostings:
    """The postings of each word, read when they are asked for."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        weakref.finalize(self, database.close)
        self._read: dict[str, Scores | None] = {}

    def get(self, word: str) -> Scores | None:
        """Return the tools that have the word; None when none has."""
        if word not in self._read:
            row = self._database.execute("SELECT tools, weights FROM words WHERE word = ?", (word,)).fetchone()
            self._read[word] = None if row is None else _weights(*row)
        return self._read[word]

    def starting_with(self, word: str, limit: int) -> list[str]:
        """Return the first longer words that start with this one, in alphabetical order."""
        rows = self._database.execute("SELECT word FROM words WHERE word > ? ORDER BY word LIMIT ?", (word, limit))
        return [other for (other,) in rows if other.startswith(word)]

    def vocabulary(self) -> Sequence[str]:
        """Return all words, in alphabetical order."""
        return [word for (word,) in self._database.execute("SELECT word FROM words ORDER BY word")]


def _weights(packed_tools: bytes, packed_weights: bytes) -> Scores:
    tools, weights = array("I"), array("f")
    tools.frombytes(packed_tools)
    weights.frombytes(packed_weights)
    return dict(zip(tools, weights, strict=True))
