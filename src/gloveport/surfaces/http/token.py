"""The server's token: created on first start, stored in a file that only its owner can read, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

from gloveport.errors import OptionError
from gloveport.folders import data_folder
from gloveport.policy.credentials import Secret

TOKEN_FILE_NAME = "token"
MIN_TOKEN_CHARS, MAX_TOKEN_CHARS = 32, 4096


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


class TokenCheck:
    """Compares tokens with the right one, of which it holds only the digest."""

    def __init__(self, token: Secret) -> None:
        self._digest = hashlib.sha256(token.reveal().encode()).digest()

    def accepts(self, authorization: str) -> bool:
        """Return True for `Bearer` and the token; takes the same time whatever is wrong."""
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "replace")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"
