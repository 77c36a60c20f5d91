"""The definitions that the user accepted: a tool whose fingerprint changes is suspended until its change is accepted (M4).

A definition is pinned when it is first seen. A file that the user's own settings name is the user's to change, and is not
pinned; a file that a project's settings name came with the project, and is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gloveport.config import SourceConfig
from gloveport.errors import OptionError
from gloveport.folders import accepted_file


@dataclass(frozen=True, slots=True)
class PinnedDefinition:
    """The fingerprints of a source's tools when they were accepted, and where their definitions are.

    `digest` is the key of the compiled definition in the definition cache. Where there is none, `definitions` has what
    `definition_text` returns for each tool. `trusts_annotations` is what the settings said when it was accepted.
    """

    tools: Mapping[str, str]
    digest: str = ""
    definitions: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    trusts_annotations: bool = False

    def definition(self, address: str) -> tuple[str, dict[str, Any], dict[str, Any] | None] | None:
        """Return the description and the schemas of a tool, or None where they are not stored here."""
        text = self.definitions.get(address)
        return None if text is None else _DEFINITION.decode(text)


def definition_text(description: str, takes: bytes, gives: bytes) -> bytes:
    """Return a tool's description and its schemas, which are JSON, as one JSON text."""
    return b"[%b,%b,%b]" % (msgspec.json.encode(description), takes, gives)


class _Head(msgspec.Struct):
    """The first line of a file. Each further line is a `_Definition`: one long line would be decoded in one long step."""

    tools: dict[str, str]
    shelf: str = ""
    definitions: dict[str, msgspec.Raw] = {}  # in files of earlier versions
    trusts_annotations: bool = False


_HEAD = msgspec.json.Decoder(_Head)
_LINE = msgspec.json.Decoder(tuple[str, msgspec.Raw])
_DEFINITION = msgspec.json.Decoder(tuple[str, dict[str, Any], dict[str, Any] | None])


class Pins:
    """The accepted definitions: one small file for each source, in a folder of the user's data."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @classmethod
    def of_user(cls) -> Pins:
        """Return the pins of this user."""
        return cls()

    def changed_tools(self, key: str, now: PinnedDefinition, writing: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the tools whose definition is not the accepted one; accept what is seen for the first time.

        That is a whole source, or new tools of a known one. A new tool that is in `writing` counts as changed instead.
        """
        pinned = self.find(key)
        if pinned is None:
            self.pin(key, now)
            return frozenset()
        changed = frozenset(address for address, print_ in now.tools.items() if pinned.tools.get(address, print_) != print_)
        changed |= writing - pinned.tools.keys()
        known = pinned.tools.keys() | changed
        new = {address: print_ for address, print_ in now.tools.items() if address not in known}
        if new or (not changed and pinned.digest != now.digest):
            # A tool that is gone stays pinned: when it comes back it must be what it was.
            definitions = {
                **{address: now.definitions[address] for address in new if address in now.definitions},
                **pinned.definitions,
            }
            digest = pinned.digest if changed else now.digest
            self.pin(key, PinnedDefinition({**pinned.tools, **new}, digest, definitions, now.trusts_annotations))
        return changed

    def pin(self, key: str, now: PinnedDefinition) -> None:
        """Accept the definition as it is now."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(_Head(dict(now.tools), now.digest, {}, now.trusts_annotations)))
                for address, text in now.definitions.items():
                    file.write(b"\n[%b,%b]" % (msgspec.json.encode(address), text))
            os.replace(name, path)
        except OSError as error:
            raise OptionError(f"the accepted definition can't be written to {path.parent}: {error.strerror}") from None

    def find(self, key: str) -> PinnedDefinition | None:
        """Return what was accepted of a source, or None."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                head = _HEAD.decode(next(file, b""))
                lines = map(_LINE.decode, file)
                definitions = {address: bytes(text) for address, text in (*head.definitions.items(), *lines)}
            return PinnedDefinition(head.tools, head.shelf, definitions, head.trusts_annotations)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            # Never accepted anew in silence: whoever can damage the file could otherwise pass a change off as accepted.
            raise OptionError(f"an accepted definition can't be read: {error}", hint=f"delete {path}") from None

    def _path(self, key: str) -> Path:
        return accepted_file(key, self._folder)


def is_pinned(config: SourceConfig) -> bool:
    """Return whether others can change the definition: one at a URL, of an MCP server, or in a file of a project.

    A Python file is trusted by its content instead, and asked about again when that changes.
    """
    of_project = bool(config.settings) and config.kind != "functions"
    return of_project or config.kind == "mcp" or (isinstance(config.location, str) and "://" in config.location)
