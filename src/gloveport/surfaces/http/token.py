"""Who calls the server, known by a token. The server's own is created on first start, in a file of its owner alone."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gloveport.errors import OptionError, StoreError
from gloveport.folders import data_folder
from gloveport.policy.credentials import Secret
from gloveport.store.reading import there_is
from gloveport.store.tokens import Role, TokenStore, token_digest
from gloveport.surfaces.http.protected_resource import ProtectedResource
from gloveport.types import DEFAULT_AGENT

TOKEN_FILE_NAME = "token"
READ_SECONDS = 1.0
HOST_ROLES: frozenset[Role] = frozenset({"host", "admin"})
"""The roles that may bring tools of their own to a run."""
MIN_TOKEN_CHARS, MAX_TOKEN_CHARS = 32, 4096

logger = logging.getLogger("gloveport")


def own_token_file() -> Path:
    """Return the path of the token that this user's servers share."""
    return data_folder() / TOKEN_FILE_NAME


def read_token(path: Path) -> Secret:
    """Return the token in a file; refuses one that others can read, or that is short enough to guess."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            text = file.read(MAX_TOKEN_CHARS + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"can't read the token in {path}: {error}") from None
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise OptionError(f"others can read or change {path}", hint=f"own the file, and run chmod 600 {path}")
    if not MIN_TOKEN_CHARS <= len(text) <= MAX_TOKEN_CHARS or not text.isprintable() or " " in text:
        hint = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good one"
        raise OptionError(f"the token in {path} must be one word of {MIN_TOKEN_CHARS} characters or more", hint=hint)
    return Secret(text, "server-token")


def own_token() -> Secret:
    """Return this user's token; creates it if there is none."""
    path = own_token_file()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".token.")  # created with mode 0600
        try:
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            os.link(name, path)  # atomic, and never replaces a token that another process has just created
        except FileExistsError:
            pass
        finally:
            os.unlink(name)
    return read_token(path)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request: its name, and what it may do."""

    name: str
    role: Role = "agent"

    @property
    def runs_programs(self) -> bool:
        """Whether it runs programs as the agent of its name."""
        return self.role in ("agent", "host")


class TokenCheck:
    """Knows the caller by its token: the server's own is that of the agent `default`, the others are in the store.

    It holds only digests. A token that was added or removed elsewhere counts from the next second on; here, at once.
    """

    def __init__(
        self,
        token: Secret,
        store: Path | None = None,
        check_agent: Callable[[str], object] = lambda name: None,
        resource: ProtectedResource | None = None,
        *,
        own_role: Role = "agent",
    ) -> None:
        self.resource = resource
        self._check_agent = check_agent  # raises OptionError for an agent that the settings don't name
        self._own = (Caller(DEFAULT_AGENT, own_role), token_digest(token.reveal()))
        self._store = store
        self._stored: list[tuple[Caller, bytes]] = []
        self._read_at = -math.inf
        self._reading: asyncio.Task[None] | None = None
        self._changes = self._seen_changes = 0  # to the store, by this server

    def look_again(self) -> None:
        """Read the tokens in the store before the next request: this server has added or removed one."""
        self._changes += 1

    async def caller_of(self, authorization: str) -> Caller | None:
        """Return the holder of a `Bearer` token; takes the same time whatever is wrong with one that we made.

        Raise OptionError for an agent that has a token and is not in the settings.
        """
        scheme, _, given = authorization.partition(" ")
        found = await self.holder(token_digest(given.strip()))
        if scheme.lower() != "bearer":
            return None
        if found is None and self.resource is not None and (agent := await self.resource.agent_of(given.strip())):
            found = Caller(agent)
        if found is None:
            return None
        self.check_known(found)
        return found

    def check_known(self, caller: Caller) -> None:
        """Raise OptionError for an agent that the settings don't name."""
        if caller.runs_programs:
            self._check_agent(caller.name)

    async def holder(self, digest: bytes) -> Caller | None:
        """Return the holder of the static token with this digest; None if it was removed."""
        found = None
        for caller, known in (self._own, *await self._known()):
            if hmac.compare_digest(digest, known):
                found = caller
        return found

    async def _known(self) -> list[tuple[Caller, bytes]]:
        if self._store is not None and time.monotonic() > self._read_at + READ_SECONDS:
            await self._read_again(self._store)
        while self._store is not None and self._seen_changes != self._changes:  # also while the tokens were read
            await self._read_again(self._store)
        return self._stored

    async def _read_again(self, store: Path) -> None:
        reading = self._reading  # the thread takes it away when it is done
        if reading is None:
            reading = self._reading = asyncio.create_task(asyncio.to_thread(self._read, store, self._changes))
        await asyncio.shield(reading)  # a locked store keeps its callers waiting, and nobody else

    def _read(self, store: Path, changes: int) -> None:
        try:
            if there_is(store):
                with closing(TokenStore(store)) as tokens:
                    self._stored = [(Caller(name, role), digest) for name, role, digest in tokens.all_digests()]
        except StoreError as error:
            logger.warning("tokens can't be read: %s", error.message)
        finally:
            self._read_at, self._seen_changes, self._reading = time.monotonic(), changes, None
