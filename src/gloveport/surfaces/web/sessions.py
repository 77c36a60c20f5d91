"""Who has signed in to the pages. A link with a one-time code, or a token, becomes a session, which a cookie names.

Sessions are in memory: they end with the server. Codes and cookies have 256 random bits, and are kept as digests.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gloveport.store.tokens import token_digest
from gloveport.surfaces.http.token import Caller, TokenCheck

CODE_SECONDS = 900.0
IDLE_SECONDS = 8 * 3600.0
MAX_SESSION_SECONDS = 7 * 86400.0
MAX_CODES, MAX_SESSIONS = 32, 32  # of one caller; the oldest give way
COOKIE_PREFIX = "gloveport-"
LINK_SCHEME = "link"
"""The scheme of the `Authorization` header that carries a one-time code."""


@dataclass(slots=True)
class SignInCode:
    """A one-time code: whom it signs in, until when, and whether it was used."""

    caller: Caller
    expires: float
    used: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class WebSession:
    """One browser that has signed in. `token` is the digest of the token that it signed in with, if it was one.

    `key` is in no cookie: cookies reach every port of a host, and another user may listen at another one. The page keeps
    the key, which browsers give to its origin alone, and names it in each request. The cookie alone is worth nothing.
    """

    caller: Caller
    key: str
    token: bytes | None
    began: float
    used: float


class WebSessions:
    """The codes and the sessions of one server."""

    def __init__(self, tokens: TokenCheck, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._codes: dict[bytes, SignInCode] = {}
        self._sessions: dict[bytes, WebSession] = {}

    def new_code(self, caller: Caller, seconds: float = CODE_SECONDS) -> tuple[str, SignInCode]:
        """Return a code that signs a caller in, once; raise OptionError for an agent that the settings don't name."""
        self._tokens.check_known(caller)
        code = secrets.token_urlsafe(32)
        self._codes = {digest: one for digest, one in self._codes.items() if one.expires > self._clock()}
        own = [digest for digest, one in self._codes.items() if one.caller == caller]
        for digest in own[: max(0, len(own) + 1 - MAX_CODES)]:
            del self._codes[digest]
        made = self._codes[token_digest(code)] = SignInCode(caller, self._clock() + seconds)
        return code, made

    def redeem(self, authorization: str) -> Caller | None:
        """Return whom a one-time code signs in; None for a wrong one, or one that was used or has expired."""
        scheme, _, code = authorization.partition(" ")
        found = self._codes.pop(token_digest(code.strip()), None) if scheme.lower() == LINK_SCHEME else None
        if found is None or found.expires <= self._clock():
            return None
        found.used.set()
        return found.caller

    def open(self, caller: Caller, token: str | None) -> tuple[str, WebSession]:
        """Return the cookie of a new session, and the session; it ends with the token that it was opened with."""
        now = self._clock()
        for digest in [digest for digest, one in self._sessions.items() if self._is_over(one)]:
            del self._sessions[digest]
        # No caller ends the sessions of another one by opening many.
        own = [digest for digest, one in self._sessions.items() if one.caller == caller]
        own.sort(key=lambda digest: self._sessions[digest].used)
        for digest in own[: max(0, len(own) + 1 - MAX_SESSIONS)]:
            del self._sessions[digest]
        cookie = secrets.token_urlsafe(32)
        held = None if token is None else token_digest(token)
        session = WebSession(caller, secrets.token_urlsafe(32), held, now, now)
        self._sessions[token_digest(cookie)] = session
        return cookie, session

    async def find(self, headers: Mapping[str, str]) -> WebSession | None:
        """Return the session of a request with these headers; None without one. It counts as used."""
        session = self._sessions.get(token_digest(_cookie(headers)))
        if session is None or self._is_over(session):
            return None
        if session.token is not None and await self._tokens.holder(session.token) != session.caller:
            return None
        self._tokens.check_known(session.caller)
        session.used = self._clock()
        return session

    def close(self, headers: Mapping[str, str]) -> None:
        """End the session of a request."""
        self._sessions.pop(token_digest(_cookie(headers)), None)

    def _is_over(self, session: WebSession) -> bool:
        now = self._clock()
        return now >= session.used + IDLE_SECONDS or now >= session.began + MAX_SESSION_SECONDS


def names_key(session: WebSession, given: str) -> bool:
    """Return whether a request names the key of its session; takes the same time for every wrong one."""
    return hmac.compare_digest(session.key.encode(), given.encode("utf-8", "replace"))


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the name of the cookie for a request: servers at the other ports of a host share its cookies."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE_PREFIX}{port if port.isdecimal() else 443}"


def set_cookie(headers: Mapping[str, str], value: str) -> str:
    """Return the header that sets the cookie; without a value, the one that removes it."""
    age = int(MAX_SESSION_SECONDS) if value else 0
    secure = "; Secure" if headers.get("origin", "").startswith("https:") else ""
    return f"{cookie_name(headers)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"


def _cookie(headers: Mapping[str, str]) -> str:
    name = cookie_name(headers)
    for pair in headers.get("cookie", "").split(";"):
        found, _, value = pair.strip().partition("=")
        if found == name:
            return value
    return ""
