"""What `gloveport store backup` and `rotate-key` do."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from pathlib import Path

from gloveport.errors import OptionError, StoreError
from gloveport.folders import config_folder
from gloveport.store.database import StoreFile
from gloveport.store.encryption import KEY_VARIABLE, StoreConnection, add_key, encrypt_again
from gloveport.store.event_log import EventLog
from gloveport.store.keys import make_key, new_place
from gloveport.store.log_items import Statement
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.types import MIB


def backup_command(view: ViewOptions, file: str) -> int:
    """Copy the store into a file that only its owner may read; return the exit code."""
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise OptionError(f"{file} can't be created: {error.strerror}", hint="name a new file") from None
    try:
        with closing(StoreFile(view.store_path)) as store, store.reading() as connection:
            connection.execute("VACUUM INTO ?", (file,))  # one moment of the file, while hosts go on
    except BaseException:
        Path(file).unlink(missing_ok=True)
        raise
    size = Path(file).stat().st_size
    if view.as_json:
        write_document(view.out, {"ok": True, "file": file, "bytes": size})
    else:
        view.err.line(f"{file} has a copy of the store ({size / MIB:,.1f} MB); to use it, set [store] path")
    return 0


def rotate_key_command(view: ViewOptions) -> int:
    """Encrypt the store with a new key; return the exit code."""
    governance = view.settings(quiet=True).governance
    path, config = governance.store_path, governance.store_config
    with closing(StoreFile(path)) as store, store.reading() as connection:
        row = connection.execute("SELECT place FROM store_keys ORDER BY number DESC LIMIT 1").fetchone()
        if row is None and not config.encrypt:
            raise OptionError("the store is not encrypted", hint="set `encrypt = true` in [store] first")
        place, key = _next_key(row[0] if row is not None else None, config.key)
        _check_readable(connection)
        connection.execute("PRAGMA secure_delete = ON")
        number = add_key(connection, place, key)
        old = encrypt_again(connection)
        done = Statement("UPDATE store_keys SET created = created WHERE number = ?", (number,))
        EventLog.record_change(path, "key-changed", {"number": number}, done)
    if view.as_json:
        write_document(view.out, {"ok": True, "key": place, "old_keys": list(old)})
        return 0
    view.err.line(f"everything in the store is encrypted with the key in {place}")
    if place.startswith("env:"):
        view.err.line(f"set {place[4:]} to the new key for all hosts, and start them again")
    for one in old:
        view.err.line(f"{one} opens backups from before: delete it when you need none of them")
    return 0


def _next_key(current: str | None, configured: str | None) -> tuple[str, bytes]:
    """Return where the next key is, and the key: a new one, beside the current one."""
    if current is None:
        place = configured or new_place(config_folder(), KEY_VARIABLE)
        return place, make_key(place)
    kind, _, name = current.partition(":")
    fresh = f"store-{secrets.token_hex(4)}"
    if kind == "env":
        if not os.environ.get(f"{name}_NEW"):
            hint = f"make one with `openssl rand -base64 32`, and set {name}_NEW to it for this command"
            raise StoreError(f"the new key is not in {name}_NEW", code="store-key", hint=hint)
        return current, make_key(f"env:{name}_NEW")
    place = f"file:{Path(name).with_name(fresh)}.key" if kind == "file" else f"keyring:{fresh}"
    return place, make_key(place)


def _check_readable(connection: StoreConnection) -> None:
    """Raise StoreError, before anything is changed, if the current key is missing."""
    connection.look_for_key()
    if connection.latest is not None:
        connection.seal(b"", "check")
