"""Keys for what is encrypted at rest: 32 random bytes, kept in the keyring, in a file, or in an environment variable.

A place is written as `keyring:NAME`, `file:PATH` or `env:NAME`. The environment variable of a purpose, such as
GLOVEPORT_STORE_KEY, comes before every place, so that a backup can be opened on another machine.
"""

from __future__ import annotations

import os
import secrets
from base64 import b64encode
from pathlib import Path

from gloveport import sealing
from gloveport.errors import SealError, StoreError
from gloveport.sealing import KEY_BYTES, MAX_KEY_FILE_BYTES, decoded_key, read_private, write_private

KEYRING_SERVICE = "gloveport"
HOW_TO_MAKE = "make one with `openssl rand -base64 32`"


def new_place(folder: Path, variable: str) -> str:
    """Return where a new key goes by default: the variable if it is set, else the keyring, else a file in a folder."""
    if os.environ.get(variable):
        return f"env:{variable}"
    name = f"store-{secrets.token_hex(4)}"
    return f"keyring:{name}" if sealing.keyring_module() is not None else f"file:{folder / name}.key"


def find_keys(place: str, variable: str) -> list[bytes]:
    """Return the keys that may be meant, the likeliest first; raise StoreError if there is none."""
    texts = [os.environ.get(variable), os.environ.get(f"{variable}_NEW"), _text_in(place)]
    found = [_key(text, place) for text in texts if text]
    if not found:
        hint = f"put it back there, or set {variable} to it; what was encrypted can't be read without it"
        raise StoreError(f"the key of the store is not in {place}", code="store-key", hint=hint)
    return found


def make_key(place: str) -> bytes:
    """Return the key of a place, which gets a new one if it has none; raise StoreError if it can't be kept there."""
    kind, _, name = place.partition(":")
    if text := _text_in(place):
        return _key(text, place)
    if kind == "env":
        raise StoreError(f"there is no key in {name}", code="store-key", hint=f"{HOW_TO_MAKE}, and set {name} to it")
    text = b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    try:
        if kind == "file":
            write_private(Path(name), f"{text}\n".encode(), replace=False)
        elif (ring := sealing.keyring_module()) is not None:
            ring.set_password(KEYRING_SERVICE, name, text)
        else:
            raise StoreError("there is no keyring here", code="store-key", hint="use file:PATH or env:NAME")
    except OSError as error:
        raise StoreError(f"a key can't be kept in {place}: {error.strerror}", code="store-key") from None
    return _key(_text_in(place) or text, place)  # another process may have created one at the same moment


def _text_in(place: str) -> str | None:
    kind, _, name = place.partition(":")
    if kind == "env":
        return os.environ.get(name)
    if kind == "keyring":
        return ring.get_password(KEYRING_SERVICE, name) if (ring := sealing.keyring_module()) is not None else None
    if not os.path.lexists(name):
        return None
    try:
        return read_private(Path(name), MAX_KEY_FILE_BYTES).decode("ascii", "replace").strip() or None
    except SealError as error:
        raise StoreError(error.message, code="store-key", hint=error.hint) from None


def _key(text: str, place: str) -> bytes:
    try:
        return decoded_key(text, place)
    except SealError as error:
        raise StoreError(error.message, code="store-key", hint=HOW_TO_MAKE) from None
