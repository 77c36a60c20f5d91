"""Tokens: shown once, kept as digests, compared in constant time. Each has a role, which says what its holder may do."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Literal

from gloveport.errors import OptionError
from gloveport.store.database import StoreFile
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement

Role = Literal["agent", "host", "approver", "admin", "monitor"]
"""An agent runs programs. A host does too, and brings tools of its own. An approver answers for people. An admin may do all
of this, and sees what everybody does. A monitor reads the metrics, and nothing else.
"""
ROLES: tuple[Role, ...] = ("agent", "host", "approver", "admin", "monitor")
TOKEN_PREFIX = "gp_"


class TokenStore(StoreFile):
    """The tokens in the store at a path. A token has 256 random bits, so a plain digest protects it."""

    def add(self, name: str, role: Role) -> str:
        """Create a token and return it; it can't be read again. Raise OptionError if the name has one."""
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        sql = "INSERT OR IGNORE INTO tokens (name, role, hash, created) VALUES (?, ?, ?, ?)"
        if not self._change("token-added", name, role, Statement(sql, (name, role, token_digest(token), time.time()))):
            raise OptionError(f"the {role} {name} has a token already", code="token-exists", hint="remove it first")
        return token

    def remove(self, name: str, role: Role) -> None:
        """Delete a token; raise OptionError if there is none."""
        sql = "DELETE FROM tokens WHERE name = ? AND role = ?"
        if not self._change("token-removed", name, role, Statement(sql, (name, role))):
            raise OptionError(f"the {role} {name[:60]} has no token")

    def _change(self, kind: str, name: str, role: Role, change: Statement) -> bool:
        return EventLog.record_change(self.path, kind, {"name": name, "role": role}, change)

    def names(self, role: Role) -> list[tuple[str, float]]:
        """Return who has a token, and since when."""
        with self.reading() as connection:
            return connection.execute("SELECT name, created FROM tokens WHERE role = ? ORDER BY name", (role,)).fetchall()

    def digests(self, role: Role) -> list[tuple[str, bytes]]:
        """Return the names and digests of the tokens of a role."""
        with self.reading() as connection:
            return connection.execute("SELECT name, hash FROM tokens WHERE role = ?", (role,)).fetchall()

    def all_digests(self) -> list[tuple[str, Role, bytes]]:
        """Return the name, the role and the digest of every token."""
        with self.reading() as connection:
            return connection.execute("SELECT name, role, hash FROM tokens").fetchall()

    def find(self, token: str, role: Role) -> str | None:
        """Return whose token this is; None for a wrong one. Every token of the role is compared."""
        given, found = token_digest(token), None
        for name, known in self.digests(role):
            if hmac.compare_digest(given, known):
                found = name
        return found


def token_digest(token: str) -> bytes:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
