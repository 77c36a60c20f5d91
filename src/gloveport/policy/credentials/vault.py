"""The vault: the user's stored credentials, in one file that only the user can read.

Each value is sealed (see `sealing`). The name, the origins, the expiry and the state are readable without the key, so that
they can be listed, and they are sealed along: a value opens only with the origins that it was stored for.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from gloveport.errors import SealError
from gloveport.folders import data_folder
from gloveport.sealing import KeyLoader, Sealer, load_key, read_private, write_private

VAULT_FILE_NAME = "credentials.json"
MAX_VAULT_BYTES = 8 * 1024 * 1024
MAX_CREDENTIALS = 1000


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """What is known about a stored credential without its value. Times are seconds since 1970.

    `sign_in` is true when a person has to sign in again: its refresh token has expired or was revoked.
    """

    name: str
    kind: Literal["secret", "oauth"]
    origins: tuple[str, ...]
    added: float
    expires: float | None = None
    sign_in: bool = False
    issuer: str = ""

    @property
    def is_expired(self) -> bool:
        """Whether a person has to replace it. A token that has expired is refreshed instead."""
        return self.kind == "secret" and self.expires is not None and self.expires < time.time()


OpenedCredential = tuple[StoredCredential, Mapping[str, Any]]
"""A credential and its value."""


class Vault:
    """The stored credentials of this user, by name (`SOURCE.SLOT`). Its methods may wait for the disk or a keyring."""

    def __init__(self, path: Path | None = None, loader: KeyLoader = load_key) -> None:
        self.path = path or data_folder() / VAULT_FILE_NAME
        self._loader = loader
        self._sealer: Sealer | None = None
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._rows: Mapping[str, Any] = {}
        self._opened: dict[str, OpenedCredential] = {}

    def stored(self) -> list[StoredCredential]:
        """Return what is stored, by name; raise SealError when the file can't be used."""
        with self._lock:
            return [_about(name, row) for name, row in sorted(self._current().items())]

    def read_at_once(self, name: str) -> tuple[OpenedCredential | None] | None:
        """Return what `read` would, in a tuple, if that takes no time; None if it may wait. For event loops."""
        if _stamp_of(self.path) != self._stamp or not self._lock.acquire(blocking=False):
            return None
        try:
            return (self._opened.get(name),) if name in self._opened or name not in self._rows else None
        finally:
            self._lock.release()

    def read(self, name: str) -> OpenedCredential | None:
        """Return a credential and its value; None when there is none; raise SealError."""
        with self._lock:
            row = self._current().get(name)
            if row is None:
                return None
            if name not in self._opened:
                about = _about(name, row)
                sealed = _bytes(row.get("sealed"))
                opened = self._key(create=False).open(sealed, _sealed_along(about), f"the credential {name} in {self.path}")
                self._opened[name] = about, json.loads(opened)
            return self._opened[name]

    def write(self, about: StoredCredential, value: Mapping[str, Any]) -> None:
        """Store a credential in place of any of the same name."""
        with self._lock, _locked(self.path.with_suffix(".lock")):
            rows = dict(self._current())
            if about.name not in rows and len(rows) >= MAX_CREDENTIALS:
                raise SealError(f"there are more than {MAX_CREDENTIALS} stored credentials", hint="remove some of them")
            sealed = self._key(create=not rows).seal(json.dumps(value).encode(), _sealed_along(about))
            rows[about.name] = {**asdict(about), "sealed": b64encode(sealed).decode()}
            self._save(rows)

    def remove(self, name: str) -> bool:
        """Delete a credential; return whether there was one."""
        with self._lock, _locked(self.path.with_suffix(".lock")):
            rows = dict(self._current())
            found = rows.pop(name, None)
            if found is not None:
                self._save(rows)
            return found is not None

    @contextmanager
    def exclusively(self, name: str, seconds: float) -> Iterator[None]:
        """Hold the one lock of a credential across processes; raise TimeoutError."""
        with _locked(self.path.parent / "locks" / sha256(name.encode()).hexdigest()[:24], seconds):
            yield

    def _key(self, *, create: bool) -> Sealer:
        if self._sealer is None:
            self._sealer = Sealer(self._loader(create=create))
        return self._sealer

    def _current(self) -> Mapping[str, Any]:
        stamp = _stamp_of(self.path)
        if stamp != self._stamp:
            self._rows = _parsed(self.path) if stamp else {}
            self._opened.clear()
            self._stamp = stamp
        return self._rows

    def _save(self, rows: Mapping[str, Any]) -> None:
        write_private(self.path, json.dumps({"version": 1, "credentials": rows}, indent=1).encode())
        self._stamp = None


def stored_names(path: Path | None = None) -> list[str]:
    """Return the names in the vault; none when it can't be read."""
    try:
        return [one.name for one in Vault(path).stored()]
    except SealError:
        return []


@contextmanager
def _locked(path: Path, seconds: float = 10.0) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process holds {path}") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _stamp_of(path: Path) -> tuple[int, ...] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_ino, about.st_size, about.st_mode


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        rows = json.loads(read_private(path, MAX_VAULT_BYTES))["credentials"]
        for name, row in rows.items():
            _about(name, row)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SealError(f"{path} is damaged", hint="restore it from a backup, or delete it and sign in again") from None
    return rows


def _about(name: str, row: Mapping[str, Any]) -> StoredCredential:
    fields = {key: row[key] for key in StoredCredential.__dataclass_fields__ if key != "name"}
    return StoredCredential(name, **{**fields, "origins": tuple(map(str, fields["origins"]))})


def _sealed_along(about: StoredCredential) -> bytes:
    return json.dumps(["gloveport credential", asdict(about)], sort_keys=True).encode()


def _bytes(text: Any) -> bytes:
    try:
        return b64decode(str(text), validate=True)
    except ValueError:
        return b""
