"""What is known about the credentials of a source, without any value: where each comes from, and what is missing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gloveport.config import SourceConfig
from gloveport.config.credential_references import split_reference
from gloveport.errors import SealError
from gloveport.policy.credentials.configured import TOKEN_SLOT
from gloveport.policy.credentials.environment import default_variable
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.sources import SourceInfo

ACCOUNT_KINDS = ("oauth2", "openid")


def credential_rows(config: SourceConfig, info: SourceInfo | None, *, needs_sign_in: bool) -> list[dict[str, Any]]:
    """Return a row for each credential slot of a source. This reads the names in the vault, and may wait for the disk."""
    stored = {about.name: about for about in _stored()}
    return [_row(config, slot, kind, stored) for slot, kind in _slots(config, info, stored, needs_sign_in)]


def document(about: StoredCredential) -> dict[str, Any]:
    """Return what may be shown of a stored credential."""
    shown = {"name": about.name, "kind": about.kind, "origins": list(about.origins), "state": state_of(about)}
    return {**shown, "issuer": about.issuer or None, "added": about.added, "expires": about.expires}


def state_of(about: StoredCredential) -> str:
    """Return whether a stored credential can be used."""
    return "sign-in-needed" if about.sign_in else "expired" if about.is_expired else "ready"


def is_service(config: SourceConfig) -> bool:
    """Return whether a source is one service at a URL, which may want a sign-in: its definition says nothing about that."""
    return config.kind in ("mcp", "graphql") and isinstance(config.location, str) and "://" in config.location


def _stored() -> list[StoredCredential]:
    try:
        return Vault().stored()
    except SealError:
        return []


def _slots(
    config: SourceConfig, info: SourceInfo | None, stored: Iterable[str], needs_sign_in: bool
) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of each slot."""
    named = {name.partition(".")[2]: "bearer" for name in stored if name.partition(".")[0] == config.name}
    named |= dict.fromkeys(config.credentials, "bearer")
    named |= {name: "environment" for name, value in config.env.items() if value.startswith("env:")}
    named |= {slot.name: slot.kind for slot in info.slots} if info is not None else {}
    uses_default = default_variable(config.name, TOKEN_SLOT) in os.environ
    if not named and (needs_sign_in or (is_service(config) and uses_default)):
        named[TOKEN_SLOT] = "bearer"
    yield from named.items()


def _row(config: SourceConfig, slot: str, kind: str, stored: Mapping[str, StoredCredential]) -> dict[str, Any]:
    variable = default_variable(config.name, slot)
    scheme, name = split_reference(config.credentials.get(slot) or config.env.get(slot, ""))
    if not scheme and not os.environ.get(variable):
        scheme, name = "stored", f"{config.name}.{slot}"
    elif not scheme:
        scheme, name = "env", variable
    about = stored.get(name) if scheme == "stored" else None
    named = config.name if slot == TOKEN_SLOT else f"{config.name}.{slot}"
    has_account = is_service(config) or kind in ACCOUNT_KINDS or (about is not None and about.kind == "oauth")
    if scheme == "env":
        state = "ready" if os.environ.get(name) else "missing"
    elif scheme == "stored":
        state = state_of(about) if about else "missing"
    else:
        state = "external"  # a keyring or a command has it: it is asked when a call needs it
    return {
        "slot": slot,
        "kind": kind,
        "state": state,
        "from": {"env": f"the variable {name}", "stored": "the stored credentials"}.get(scheme, f"a {scheme}"),
        "issuer": about.issuer or None if about else None,
        "days": _days(about),
        "account": has_account,
        "command": f"gloveport auth {'login' if has_account else 'add'} {named}",
        "variable": None if config.credentials.get(slot) else variable,
    }


def _days(about: StoredCredential | None) -> int | None:
    """Return in how many days a person must replace a credential; None where nobody must."""
    if about is None or about.kind == "oauth" or about.expires is None:
        return None
    return max(0, int((about.expires - time.time()) / 86_400))
