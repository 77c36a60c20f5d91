"""References to credentials, as settings contain them: `env:NAME`, `keyring:SERVICE/USER`, `command:…`, `stored:NAME`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean

SCHEMES = ("env", "stored", "keyring", "command")
_REFERENCE = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,30}):(.+)", re.DOTALL)
_STORED_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def split_reference(reference: str) -> tuple[str, str]:
    """Return the scheme of a reference, and the rest."""
    scheme, _, name = reference.partition(":")
    return scheme, name


def check_reference(source: str, slot: str, reference: str, schemes: Collection[str] | None = SCHEMES) -> None:
    """Raise OptionError for what is no reference. The message does not show it: it may be the secret itself.

    `schemes` are the known ones; None before the plugins are loaded, which may have others.
    """
    what = f"the credential {slot} of the source {source}"
    match = _REFERENCE.fullmatch(reference)
    # A secret may contain a colon, so a scheme is shown only if it looks like one of ours.
    if match is None or (schemes is not None and match[1] not in schemes):
        meant = did_you_mean(match[1], SCHEMES) if match else None
        hint = f'write {slot} = "env:NAME_OF_A_VARIABLE", or store it with `gloveport auth add {source}`'
        problem = f"is not `env:NAME`, `stored:NAME`, `keyring:SERVICE/USER` or `command:…`{f'; {meant}' if meant else ''}"
        raise OptionError(f"{what} {problem}", hint=f"{hint}: a configuration file must not hold secrets")
    scheme, name = match[1], match[2]
    if scheme == "keyring" and not all(name.rpartition("/")[::2]):
        raise OptionError(f"{what} must name a service and a user", hint=f'write {slot} = "keyring:SERVICE/USER"')
    if scheme == "stored" and not _STORED_NAME.fullmatch(name):
        raise OptionError(f"{what} names no stored credential", hint="`gloveport auth list` shows their names")
    if scheme == "command" and not _argv(name):
        raise OptionError(f"{what} is not a command", hint=f'write {slot} = "command:op read op://vault/item/field"')


def _argv(text: str) -> list[str]:
    try:
        return [] if "\0" in text else shlex.split(text)
    except ValueError:
        return []
