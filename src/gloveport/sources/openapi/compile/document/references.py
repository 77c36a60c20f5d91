"""References: what a `$ref` points to, inside the document or in a file beside it, and nowhere else (N10)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from gloveport.errors import SourceError

MOST_HOPS = 32
MOST_FILES = 2000


class Dangling(Exception):
    """A reference that points to nothing, in a circle, or out of the definition; the text says which."""


class Found(NamedTuple):
    """What a reference points to: the value, the file it stands in ("" is the document itself) and its place there."""

    value: Any
    file: str
    pointer: str

    @property
    def place(self) -> str:
        """Where it is, for people."""
        return f"{self.file}#{self.pointer}"


class Siblings:
    """The files beside a document, read when a reference first names them; none for a document that is not a file."""

    def __init__(self, folder: Path | None, parse: Callable[[bytes, str], Any], most_bytes: int) -> None:
        self._folder = folder.resolve() if folder else None
        self._parse = parse
        self._left = most_bytes
        self._parsed: dict[str, Any] = {}
        self.digests: dict[str, str] = {}  # of every file that was asked for, "" for one that can't be read

    def locate(self, file: str, base: str) -> str:
        """The path below the folder of the document that `file`, written in the file `base`, means."""
        if self._folder is None or "://" in file or file.startswith(("/", "\\", "file:")) or "\0" in file:
            raise Dangling(f"{file!a} is not part of the definition")
        beside = (self._folder / base).parent if base else self._folder
        try:
            target = (beside / unquote(file)).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise Dangling(f"{file!a} can't be found") from error
        if not target.is_relative_to(self._folder):
            raise Dangling(f"{file!a} is outside of the definition's folder")
        return target.relative_to(self._folder).as_posix()

    def load(self, file: str) -> Any:
        """The parsed content of a file as `locate` named it."""
        if file not in self._parsed:
            if len(self._parsed) >= MOST_FILES:
                raise Dangling(f"the definition has more than {MOST_FILES:,} files")
            raw = read_beneath(self._folder, file, self._left)
            if raw is None:
                self.digests[file] = ""
                raise Dangling(f"{file!a} is missing, no plain file, or too large")
            self._left -= len(raw)
            self.digests[file] = hashlib.sha256(raw).hexdigest()
            try:
                self._parsed[file] = self._parse(raw, file)
            except SourceError as error:
                self._parsed[file] = None
                raise Dangling(error.message) from error
        return self._parsed[file]


def read_beneath(folder: Path | None, file: str, most: int) -> bytes | None:
    """The bytes of a plain file below a folder, or None: missing, a device, out of the folder by a link, too large."""
    if folder is None:
        return None
    try:
        path = (folder / file).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()) or not path.is_file() or path.stat().st_size > most:
            return None
        with path.open("rb") as opened:
            raw = opened.read(most + 1)
    except (OSError, RuntimeError, ValueError):
        return None
    return raw if len(raw) <= most else None


class References:
    """Finds what references point to. `plain` is the place of names without `#`, as Google's discovery documents have."""

    def __init__(self, root: dict[str, Any], siblings: Siblings, plain: str | None = None) -> None:
        self._root = root
        self.siblings = siblings
        self._plain = plain
        self._known: dict[tuple[str, str], Found] = {}

    def find(self, reference: str, base: str = "") -> Found:
        """What a reference that stands in the file `base` points to; Dangling when that is nothing we may read."""
        key = (reference, base)
        if key not in self._known:
            self._known[key] = self._find(reference, base)
        return self._known[key]

    def follow(self, value: Any, base: str = "", pointer: str = "") -> Found:
        """The value itself, or what it refers to at the end of a chain of references."""
        found = Found(value, base, pointer)
        for _ in range(MOST_HOPS):
            reference = found.value.get("$ref") if isinstance(found.value, dict) else None
            if not isinstance(reference, str):
                return found
            found = self.find(reference, found.file)
        raise Dangling(f"the reference {found.place!a} leads in a circle")

    def _find(self, reference: str, base: str) -> Found:
        if self._plain is not None and not reference.startswith("#"):
            return self._walk(self._root, "", f"{self._plain}/{reference}")
        file, _, fragment = reference.partition("#")
        name = self.siblings.locate(file, base) if file else base
        return self._walk(self.siblings.load(name) if name else self._root, name, unquote(fragment))

    def _walk(self, value: Any, file: str, pointer: str) -> Found:
        if pointer and not pointer.startswith("/"):
            raise Dangling(f"{f'{file}#{pointer}'!a} is no pointer")
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
                value = value[int(key)]
            else:
                raise Dangling(f"{f'{file}#{pointer}'!a} points to nothing")
        return Found(value, file, pointer)
