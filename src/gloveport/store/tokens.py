"""Tokens of agents and approvers: shown once, kept as digests, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import time
from pathlib import Path
from typing import Literal

from gloveport.errors import OptionError, StoreError
from gloveport.store.database import hint_for, open_database

Role = Literal["agent", "approver"]
TOKEN_PREFIX = "gp_"


class TokenStore:
    """The tokens in the store at a path. A token has 256 random bits, so a plain digest protects it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_database(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, name: str, role: Role) -> str:
        """Create a token and return it; it can't be read again. Raise OptionError if the name has one."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        row = (name, role, token_digest(token), time.time())
        try:
            self._connection.execute("INSERT INTO tokens (name, role, hash, created) VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise OptionError(f"the {role} {name} has a token already", hint="remove it first") from None
        except sqlite3.Error as error:
            raise self._unavailable(error) from None
        return token

    def remove(self, name: str, role: Role) -> None:
        """Delete a token; raise OptionError if there is none."""
        try:
            gone = self._connection.execute("DELETE FROM tokens WHERE name = ? AND role = ?", (name, role)).rowcount
        except sqlite3.Error as error:
            raise self._unavailable(error) from None
        if gone != 1:
            raise OptionError(f"the {role} {name[:60]} has no token")

    def names(self, role: Role) -> list[tuple[str, float]]:
        """Return who has a token, and since when."""
        return self._connection.execute("SELECT name, created FROM tokens WHERE role = ? ORDER BY name", (role,)).fetchall()

    def digests(self, role: Role) -> list[tuple[str, bytes]]:
        """Return the names and digests of the tokens of a role."""
        try:
            return self._connection.execute("SELECT name, hash FROM tokens WHERE role = ?", (role,)).fetchall()
        except sqlite3.Error as error:
            raise self._unavailable(error) from None

    def find(self, token: str, role: Role) -> str | None:
        """Return whose token this is; None for a wrong one. Every token of the role is compared."""
        given, found = token_digest(token), None
        for name, known in self.digests(role):
            if hmac.compare_digest(given, known):
                found = name
        return found

    def _unavailable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"the store {self._path} can't be used: {error}", hint=hint_for(error))


def token_digest(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
