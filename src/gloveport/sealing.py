"""Seals data at rest with AES-256-GCM, and finds the key: in the environment, in the user's files, or in the keyring.

The key is taken from the variable GLOVEPORT_KEY (base64 of 32 bytes) if it is set, else from the file `key` in the user's
data folder, else from the keyring of the system. Where there is none, one is created: in the keyring if that works here,
else in the file.
"""

from __future__ import annotations

import binascii
import os
import secrets
import stat
import tempfile
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Protocol

from gloveport.errors import SealError
from gloveport.folders import FOLDER_NAME, data_folder

KEY_VARIABLE = "GLOVEPORT_KEY"
KEY_FILE_NAME = "key"
KEY_BYTES = 32
NONCE_BYTES = 12
KEYRING_USER = "key"
MAX_KEY_FILE_BYTES = 1024


class KeyLoader(Protocol):
    """Returns the key that seals this user's data. It may take long: a keyring may ask a person."""

    def __call__(self, *, create: bool) -> bytes:
        """Return the key; raise SealError when there is none, unless `create` is true."""
        ...


class Sealer:
    """Seals and opens data with one key. `about` is not hidden, but it must be the same when the data is opened."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, data: bytes, about: bytes) -> bytes:
        """Return the data in sealed form."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, about)

    def open(self, sealed: bytes, about: bytes, what: str) -> bytes:
        """Return the data; raise SealError, which calls it `what`, when it was sealed otherwise or has changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            raise SealError(f"{what} can't be opened: the key is not the one that sealed it, or it was changed") from None


def load_key(*, create: bool) -> bytes:
    """Return the user's key from the environment, the file or the keyring. With `create`, make one where there is none."""
    if given := os.environ.get(KEY_VARIABLE):
        return decoded_key(given, f"the variable {KEY_VARIABLE}")
    path = data_folder() / KEY_FILE_NAME
    if path.exists():
        return decoded_key(read_private(path, MAX_KEY_FILE_BYTES).decode("ascii", "replace"), str(path))
    ring = keyring_module()
    try:
        kept = ring.get_password(FOLDER_NAME, KEYRING_USER) if ring else None
    except Exception:  # noqa: BLE001 - a keyring is a plug-in: whatever is wrong with it, the file remains
        ring = kept = None
    if kept:
        return decoded_key(kept, "the keyring")
    if not create:
        hint = f"set {KEY_VARIABLE}, bring back {path} or the keyring; else remove what was sealed and add it again"
        raise SealError("the key that sealed the stored data is not here", hint=hint)
    return _created(path, ring)


def keyring_module() -> Any:
    """Return the keyring library where it is installed and finds a keyring; else None."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        return None
    return None if isinstance(keyring.get_keyring(), (fail.Keyring, null.Keyring)) else keyring


def read_private(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file that only this user can read; raise SealError for any other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise SealError(f"{path} can't be read: {error.strerror}") from None
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise SealError(f"others can read or change {path}", hint=f"own the file, and run chmod 600 {path}")
    if len(raw) > max_bytes:
        raise SealError(f"{path} is larger than {max_bytes:,} bytes")
    return raw


def write_private(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a file that only this user can read, at once or not at all. Without `replace`, an existing file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from the start
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(name, path)
        else:
            os.link(name, path)  # atomic, and never replaces the key that another process has just created
            os.unlink(name)
    except FileExistsError:
        os.unlink(name)
    except BaseException:
        os.unlink(name)
        raise


def _created(path: Path, ring: Any) -> bytes:
    text = b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    if ring:
        try:
            ring.set_password(FOLDER_NAME, KEYRING_USER, text)
            if ring.get_password(FOLDER_NAME, KEYRING_USER) == text:
                return b64decode(text)
        except Exception:  # noqa: BLE001 - as above
            pass
    write_private(path, text.encode() + b"\n", replace=False)
    return decoded_key(read_private(path, MAX_KEY_FILE_BYTES).decode("ascii", "replace"), str(path))


def decoded_key(text: str, where: str) -> bytes:
    """Return the key in a text; raise SealError for one that holds none."""
    try:
        key = b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        hint = "python3 -c 'import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())' makes one"
        raise SealError(f"{where} does not hold a key: base64 of {KEY_BYTES} bytes", hint=hint)
    return key
