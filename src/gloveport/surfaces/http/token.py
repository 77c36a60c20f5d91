"""The server's token: made on first start, kept in a file that its owner alone can read, compared in constant time."""

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

FILE = "token"
SHORTEST, LONGEST = 32, 4096


def own_token_file() -> Path:
    """Where the token lies that this user's servers share."""
    return data_folder() / FILE


def read_token(path: Path) -> Secret:
    """The token in a file; one that others can read, or that is short enough to guess, is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            text = file.read(LONGEST + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"the token in {path} can't be read: {error}") from None
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise OptionError(f"others can read or change {path}", hint=f"chmod 600 {path}, and make it yours")
    if not SHORTEST <= len(text) <= LONGEST or not text.isprintable() or " " in text:
        hint = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good one"
        raise OptionError(f"the token in {path} must be one word of {SHORTEST} characters or more", hint=hint)
    return Secret(text, "server-token")


def own_token() -> Secret:
    """This user's token; the first to ask makes it."""
    path = own_token_file()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".token.")  # which is 0600 from the beginning
        try:
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            os.link(name, path)  # whole or not at all, and never over the token that another has just made
        except FileExistsError:
            pass
        finally:
            os.unlink(name)
    return read_token(path)


class TokenCheck:
    """Knows a token when it sees it; holds its digest alone."""

    def __init__(self, token: Secret) -> None:
        self._digest = hashlib.sha256(token.reveal().encode()).digest()

    def accepts(self, authorization: str) -> bool:
        """True for `Bearer` and the token; takes the same time whatever is wrong."""
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "replace")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"
