"""The definition cache: each compiled definition is one SQLite file, so that a schema is read only when it is needed.

A file is named by the digest of its inputs. It is written under a temporary name, renamed when it is complete, and never
changed after that. Every text in it has a checksum: a damaged file is deleted and built again.

Others wrote the texts. Each is decoded on its own, because decoding holds the interpreter lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sqlite3
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from gloveport.errors import SourceError
from gloveport.schema_cost import is_normal, subschemas_of
from gloveport.sources.compiled_definition import TOO_LARGE_SCHEMA, ToolHead, shared_schema_names

FORMAT_VERSION = 4
MAX_UNUSED_DAYS = 90
MAX_DRAFT_DAYS = 1
MAX_SCHEMA_BYTES = 1_500_000
MAX_SUBSCHEMAS = 15_000
_HEAD = msgspec.json.Decoder(ToolHead)
"""Of a schema with everything that it refers to; of a larger one, what is furthest away is left out."""

_TABLES = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE definitions (name TEXT PRIMARY KEY, text BLOB, checksum INTEGER);
CREATE TABLE defs (name TEXT PRIMARY KEY, text BLOB, checksum INTEGER);
CREATE TABLE heads (name TEXT PRIMARY KEY, text BLOB, checksum INTEGER);
CREATE TABLE facts (name TEXT PRIMARY KEY, text BLOB, checksum INTEGER);
"""


def digest(*parts: bytes) -> str:
    """Return the SHA-256 (hex) of a definition's inputs, which names its file. `("ab", "c")` and `("a", "bc")` differ."""
    hashed = hashlib.sha256(b"%d" % FORMAT_VERSION)
    for part in parts:
        hashed.update(b"%d:" % len(part))
        hashed.update(part)
    return hashed.hexdigest()


class DefinitionCache:
    """One cached definition: the heads are in memory, the rest is on disk. Addresses don't include the source's name."""

    def __init__(
        self, path: Path, database: sqlite3.Connection, heads: tuple[ToolHead, ...], facts: Mapping[str, Any]
    ) -> None:
        self._path = path
        self._database = database
        self._close = weakref.finalize(self, database.close)
        self._heads = heads
        self.facts = facts

    @classmethod
    def build(  # noqa: PLR0917 - the parts of a definition
        cls,
        folder: Path,
        digest: str,
        heads: Iterable[ToolHead],
        definitions: Iterable[tuple[str, bytes]],
        defs: Iterable[tuple[str, bytes]],
        facts: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    ) -> DefinitionCache:
        """Write a definition to the cache and open it.

        The parts are consumed in the order `definitions`, `defs`, `heads`, `facts`, so a later part may depend on an
        earlier one. `facts` may be a function for that reason.
        """
        path = folder / f"{digest}.sqlite"
        draft = folder / f".{digest[:16]}-{secrets.token_hex(8)}.draft"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
                database.executescript(_TABLES)
                database.execute("BEGIN")
                database.executemany("INSERT INTO definitions VALUES (?, ?, ?)", _rows(definitions))
                database.executemany("INSERT INTO defs VALUES (?, ?, ?)", _rows(defs))
                texts = ((head.address, msgspec.json.encode(head)) for head in heads)
                database.executemany("INSERT INTO heads VALUES (?, ?, ?)", _rows(texts))
                whole = [("facts", msgspec.json.encode(facts() if callable(facts) else facts))]
                database.executemany("INSERT INTO facts VALUES (?, ?, ?)", _rows(whole))
                database.execute("COMMIT")
            draft.replace(path)
            _remove_unused(folder)
        except (OSError, sqlite3.Error) as error:
            hint = "check that the folder is writable and that the disk has space"
            raise SourceError(f"a compiled definition can't be written to {folder}: {error}", hint=hint) from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
        cache = cls.open(folder, digest)
        if cache is None:
            raise SourceError(f"a compiled definition can't be read back from {folder}", hint="check the disk for errors")
        return cache

    @classmethod
    def open(cls, folder: Path, digest: str, *, with_heads: bool = True) -> DefinitionCache | None:
        """Return the definition of this digest, or None when it is not in the cache or is damaged."""
        path = folder / f"{digest}.sqlite"
        if not path.is_file():
            return None
        # Nothing writes to a file once it has its name, so it can be read without locks.
        address = f"file:{quote(str(path))}?mode=ro&immutable=1"
        try:
            database = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.Error:
            return None
        try:
            heads = tuple(_read_heads(database)) if with_heads else ()
            facts = msgspec.json.decode(_read_text(database, "facts", "facts"), type=dict[str, Any])
        except (sqlite3.Error, _DamagedCacheError, msgspec.DecodeError):
            database.close()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # marks it as used: see _remove_unused
        return cls(path, database, heads, facts)

    @property
    def digest(self) -> str:
        """The digest that it was built under."""
        return self._path.stem

    def heads(self) -> tuple[ToolHead, ...]:
        """Return the heads of the tools, in the order to list them; nothing is read from disk."""
        return self._heads

    def head(self, address: str) -> ToolHead:
        """Return the head of one tool, from disk; raises KeyError when there is no such tool."""
        return _HEAD.decode(self._read("heads", address))

    def definition(self, address: str) -> bytes:
        """Return the stored definition of a tool; raises KeyError when there is no such tool."""
        return self._read("definitions", address)

    def schema(self, text: bytes) -> dict[str, Any]:
        """Return a schema together with exactly the `$defs` that it reaches, all in the normal form.

        Of a schema that is too large, what is furthest away accepts anything. Raises SourceError for one that is not in
        the normal form, which no compiler of ours stores.
        """
        pieces: dict[str, Any] = {}
        nodes: list[dict[str, Any]] = []
        waiting, names, bytes_left = deque([("", text)]), {""}, MAX_SCHEMA_BYTES
        while waiting:
            name, part = waiting.popleft()
            bytes_left -= len(part)
            piece = self._decode(part) if bytes_left >= 0 else dict(TOO_LARGE_SCHEMA)
            found = list(islice(subschemas_of(piece), MAX_SUBSCHEMAS - len(nodes) + 1))
            if len(nodes) + len(found) > MAX_SUBSCHEMAS:
                piece, found = dict(TOO_LARGE_SCHEMA), []
            pieces[name] = piece
            nodes += found
            for used in shared_schema_names(part) if found else ():
                if used not in names:
                    names.add(used)
                    with contextlib.suppress(KeyError):  # a value that only looks like a reference
                        waiting.append((used, self._read("defs", used)))
        root = pieces.pop("")
        if not all(is_normal(node, pieces) for node in nodes) or not isinstance(root, dict):
            raise self._damage()
        return root | {"$defs": pieces} if pieces else root

    def _decode(self, text: bytes) -> Any:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._damage() from error

    def close(self) -> None:
        """Close the file. Calling it twice is harmless."""
        self._close()

    def _read(self, table: str, name: str) -> bytes:
        try:
            return _read_text(self._database, table, name)
        except (sqlite3.DatabaseError, _DamagedCacheError) as error:
            raise self._damage() from error

    def _damage(self) -> SourceError:
        self._path.unlink(missing_ok=True)
        hint = "open the source again, which compiles the definition anew"
        return SourceError(f"the compiled definition {self._path.name} is damaged", hint=hint)


class LazySchema(Mapping[str, Any]):
    """A schema that is loaded when it is first accessed: what `load` returns for `key`.

    A hostile definition makes ten thousand of them, so each is a single object for the garbage collector.
    """

    __slots__ = ("_key", "_load", "_schema")

    def __init__(self, load: Callable[[Any], dict[str, Any]], key: str | bytes) -> None:
        self._load = load
        self._key = key
        self._schema: dict[str, Any] | None = None

    def _loaded(self) -> dict[str, Any]:
        if self._schema is None:
            self._schema = self._load(self._key)
        return self._schema

    def __getitem__(self, key: str) -> Any:
        return self._loaded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())


class _DamagedCacheError(Exception):
    """A text is missing, or it does not match its checksum."""


def _remove_unused(folder: Path) -> None:
    """Delete definitions that were not opened for months, and drafts that were never completed."""
    for path in folder.iterdir():
        days = {".sqlite": MAX_UNUSED_DAYS, ".shelf": MAX_UNUSED_DAYS, ".draft": MAX_DRAFT_DAYS}.get(path.suffix)
        with contextlib.suppress(OSError):
            if days is not None and time.time() - path.stat().st_mtime > days * 86400:
                path.unlink()


def _rows(texts: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes, int]]:
    return ((name, text, zlib.crc32(text)) for name, text in texts)


def _read_heads(database: sqlite3.Connection) -> Iterator[ToolHead]:
    for name, text, checksum in database.execute("SELECT name, text, checksum FROM heads ORDER BY rowid"):
        if not isinstance(text, bytes) or zlib.crc32(text) != checksum:
            raise _DamagedCacheError(name)
        yield _HEAD.decode(text)


def _read_text(database: sqlite3.Connection, table: str, name: str) -> bytes:
    row = database.execute(f"SELECT text, checksum FROM {table} WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise KeyError(name) if table != "facts" else _DamagedCacheError(name)
    text, checksum = row
    if not isinstance(text, bytes) or zlib.crc32(text) != checksum:
        raise _DamagedCacheError(name)
    return text
