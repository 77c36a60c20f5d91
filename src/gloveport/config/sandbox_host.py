"""The settings of the sandbox host: `[sandbox.remote]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gloveport import urls
from gloveport.config.credential_references import check_reference
from gloveport.errors import OptionError, ToolError

KEYS = ("url", "token", "allow_private")
SANDBOX_HOST = "sandbox"  # as the credentials call it
TOKEN_SLOT = "token"


@dataclass(frozen=True, slots=True)
class SandboxHostConfig:
    """Another Gloveport that runs our programs: its URL, and the reference to a token that it knows.

    It may have a private address only with `allow_private`.
    """

    url: urls.Url
    token: str
    allow_private: bool = False


def sandbox_host_from(table: object) -> SandboxHostConfig | None:
    """Return the checked settings; None if there are none. Raise OptionError."""
    if table is None:
        return None
    if not isinstance(table, Mapping):
        raise OptionError("sandbox.remote must be a table: [sandbox.remote]")
    values: Mapping[str, Any] = table
    if unknown := next((key for key in values if key not in KEYS), None):
        raise OptionError(f"[sandbox.remote] has no key {unknown!r:.60}", hint=f"its keys are {', '.join(KEYS)}")
    token, allow_private = values.get("token"), values.get("allow_private", False)
    if not isinstance(token, str):
        raise OptionError("[sandbox.remote] needs a token", hint='for example token = "env:SANDBOX_TOKEN"')
    if not isinstance(allow_private, bool):
        raise OptionError(f"allow_private of [sandbox.remote] must be true or false, not {allow_private!r:.40}")
    check_reference(SANDBOX_HOST, TOKEN_SLOT, token)
    try:
        url = urls.parse(str(values.get("url")))
    except ToolError as error:
        hint = 'for example url = "https://sandboxes.example"'
        raise OptionError(f"url of [sandbox.remote] is not the URL of a server: {error.message}", hint=hint) from None
    if url.target != "/":
        raise OptionError("url of [sandbox.remote] has a path", hint="leave it out")
    if url.scheme != "https" and not allow_private:
        hint = "use https; a server of your own network may have http with allow_private = true"
        raise OptionError("url of [sandbox.remote] sends programs and tokens in the clear", hint=hint)
    return SandboxHostConfig(url, token, allow_private)
