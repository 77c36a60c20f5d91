"""Follow references: what a `$ref` points to, inside the document or in a file beside it, and nowhere else (N10)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import unquote

from gloveport.errors import SourceError
from gloveport.sources.openapi.frames import MAX_SIBLING_FILES

MAX_REFERENCE_HOPS = 32

ReadFile = Callable[[str, int], bytes | None]
"""Reads a file by its path below the document's folder; None when it is missing, out of the folder or over the limit."""


class DanglingReference(Exception):
    """A reference that points to nothing, is circular, or leads out of the definition; the text says which."""


class DocumentNode(NamedTuple):
    """A value in a definition, the file that it is in ("" is the document itself), and its JSON pointer if it is known."""

    value: Any
    file: str
    pointer: str

    @property
    def place(self) -> str:
        """The node's place in the definition, for messages and as a key."""
        return f"{self.file}#{self.pointer}"


class SiblingFiles:
    """The files beside a document, read when a reference first names them.

    A document that is not a file has none (`read` is None). `max_bytes` bounds all of them together.
    """

    def __init__(self, folder: str, read: ReadFile | None, parse: Callable[[bytes, str], Any], max_bytes: int) -> None:
        self._folder = folder
        self._read = read
        self._parse = parse
        self._bytes_left = max_bytes
        self._parsed: dict[str, Any] = {}
        self._missing: set[str] = set()

    def locate(self, file: str, base: str) -> str:
        """Return the path, below the document's folder, of a file that the file `base` refers to as `file`."""
        if self._read is None or "://" in file or file.startswith(("/", "\\", "file:")) or "\0" in unquote(file):
            raise DanglingReference(f"{file!a} is not part of the definition")
        # The path alone decides here. The reader follows links, and it refuses one that leads out of the folder.
        path = posixpath.normpath(posixpath.join(self._folder, posixpath.dirname(base), unquote(file)))
        below = posixpath.join(self._folder, "")
        if not path.startswith(below):
            raise DanglingReference(f"{file!a} is outside of the definition's folder")
        return path.removeprefix(below)

    def load(self, file: str) -> Any:
        """Return the parsed content of a file that `locate` found."""
        if file in self._missing:
            raise DanglingReference(f"{file!a} is missing, not a regular file, or too large")
        if file not in self._parsed:
            if len(self._parsed) + len(self._missing) >= MAX_SIBLING_FILES:
                raise DanglingReference(f"the definition has more than {MAX_SIBLING_FILES:,} files")
            raw = self._read(file, self._bytes_left) if self._read else None
            if raw is None:
                self._missing.add(file)
                raise DanglingReference(f"{file!a} is missing, not a regular file, or too large")
            self._bytes_left -= len(raw)
            try:
                self._parsed[file] = self._parse(raw, file)
            except SourceError as error:
                self._parsed[file] = None
                raise DanglingReference(error.message) from error
        return self._parsed[file]


class References:
    """Resolves references. `plain` is the pointer that names without `#` are below, as in Google's discovery documents."""

    def __init__(self, root: dict[str, Any], siblings: SiblingFiles, plain: str | None = None) -> None:
        self._root = root
        self.siblings = siblings
        self._plain = plain
        self._known: dict[tuple[str, str], DocumentNode] = {}

    def find(self, reference: str, base: str = "") -> DocumentNode:
        """Return what a reference in the file `base` points to; raises DanglingReference when that can't be read."""
        key = (reference, base)
        if key not in self._known:
            self._known[key] = self._resolve(reference, base)
        return self._known[key]

    def follow(self, value: Any, base: str = "", pointer: str = "") -> DocumentNode:
        """Return the value itself, or what it refers to at the end of a chain of references."""
        found = DocumentNode(value, base, pointer)
        for _ in range(MAX_REFERENCE_HOPS):
            reference = found.value.get("$ref") if isinstance(found.value, dict) else None
            if not isinstance(reference, str):
                return found
            found = self.find(reference, found.file)
        raise DanglingReference(f"the reference {found.place!a} is circular")

    def _resolve(self, reference: str, base: str) -> DocumentNode:
        if self._plain is not None and not reference.startswith("#"):
            return self._resolve_pointer(self._root, "", f"{self._plain}/{reference}")
        file, _, fragment = reference.partition("#")
        name = self.siblings.locate(file, base) if file else base
        return self._resolve_pointer(self.siblings.load(name) if name else self._root, name, unquote(fragment))

    def _resolve_pointer(self, value: Any, file: str, pointer: str) -> DocumentNode:
        if pointer and not pointer.startswith("/"):
            raise DanglingReference(f"{f'{file}#{pointer}'!a} is not a JSON pointer")
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
                value = value[int(key)]
            else:
                raise DanglingReference(f"{f'{file}#{pointer}'!a} points to nothing")
        return DocumentNode(value, file, pointer)
