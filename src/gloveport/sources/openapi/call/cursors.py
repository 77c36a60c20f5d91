"""Cursors that pass through the program and come back unchanged, or not at all.

A cursor says which request the next page needs. One that a program could write itself would let it make requests that its
arguments were never checked for, so each is sealed with a key of this user, for one tool.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from hashlib import sha256
from pathlib import Path

import msgspec

from gloveport.errors import ToolError

KEY_FILE = "cursors.key"
SEAL = 16


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way to a next page: a URL that the service gave, or a value for the argument that pages.

    `seen` is the digest of the page before, by which a service that gives the same page for ever is noticed.
    """

    url: str | None = None
    value: str | int | None = None
    seen: str = ""


class Cursors:
    """Seals steps and opens them again; a resumed run finds its cursors good, since the key is kept in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._key = _key(folder / KEY_FILE)

    def seal(self, tool: str, step: Step) -> str:
        """The cursor."""
        data = msgspec.json.encode(step)
        return base64.urlsafe_b64encode(self._mark(tool, data) + data).decode()

    def open(self, tool: str, cursor: str) -> Step:
        """The step; raises ToolError `bad-arguments` for a cursor that was not sealed here for this tool."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode())
        except ValueError:
            raw = b""
        mark, data = raw[:SEAL], raw[SEAL:]
        if not hmac.compare_digest(mark, self._mark(tool, data)):
            hint = "give `next` of the page before, unchanged, or start again without a cursor"
            raise ToolError(f"that is no cursor of `tools.{tool}`", code="bad-arguments", tool=tool, hint=hint)
        return msgspec.json.decode(data, type=Step)

    def _mark(self, tool: str, data: bytes) -> bytes:
        return hmac.digest(self._key, tool.encode() + b"\0" + data, sha256)[:SEAL]


def _key(path: Path) -> bytes:
    """The key in the file, made when it is not there; where no file can be, one for this process alone."""
    key = secrets.token_bytes(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            os.link(draft, path)  # whole, and only where there is none: two processes that start at once agree
        except FileExistsError:
            key = path.read_bytes()
        finally:
            draft.unlink()
    except OSError:
        return key
    return key if len(key) == 32 else secrets.token_bytes(32)
