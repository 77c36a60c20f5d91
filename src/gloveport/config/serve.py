"""The settings of the HTTP server: `[serve]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gloveport.config.layers import place_prefix
from gloveport.errors import OptionError, ToolError
from gloveport.urls import parse

SERVE_KEYS = (
    *("issuer", "resource", "scope", "agent_claim", "agents", "issuer_private", "traces"),
    *("callbacks", "callbacks_private"),
)
DEFAULT_AGENT_CLAIM = "client_id"
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Access tokens that the server takes beside its own: those of `issuer` for the audience `resource`, its public URL.

    `agents` maps values of the claim `agent_claim` to agents: a token with any other value is refused. With `scope`, a
    token must have it. The issuer may be on loopback or at a private address with `issuer_private`. With `traces`, runs are
    traced with OpenTelemetry.

    Calls of a program may be sent to callers at the origins `callbacks`, which are public, and `callbacks_private`.
    """

    issuer: str = ""
    resource: str = ""
    scope: str = ""
    agent_claim: str = DEFAULT_AGENT_CLAIM
    agents: Mapping[str, str] = field(default_factory=dict)
    issuer_private: bool = False
    traces: bool = False
    callbacks: frozenset[str] = frozenset()
    callbacks_private: frozenset[str] = frozenset()


def serve_from(values: Mapping[str, Any], origins: Mapping[str, str]) -> ServeConfig:
    """Return the settings of the server; raise OptionError with the place of a value that can't be one."""

    def wrong(key: str, expected: str) -> OptionError:
        return OptionError(f"{place_prefix(origins, f'serve.{key}')}{key} of [serve] must be {expected}")

    for key in ("issuer", "resource"):
        if key in values and not _is_safe_url(values[key]):
            raise wrong(key, "an https URL without query, or one on loopback")
    for key in ("scope", "agent_claim"):
        value = values.get(key, "text")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable() or set(' "\\') & set(value):
            raise wrong(key, "one word")
    agents = values.get("agents", {})
    if not isinstance(agents, Mapping) or not all(isinstance(name, str) for name in agents.values()):
        raise wrong("agents", 'a table from values of the claim to agents: {"client-1" = "research"}')
    for key in ("issuer_private", "traces"):
        if not isinstance(values.get(key, False), bool):
            raise wrong(key, "true or false")
    if ("issuer" in values) != ("resource" in values):
        raise wrong("issuer" if "issuer" in values else "resource", "set together: issuer and resource")
    callbacks = _origins(values.get("callbacks", []), schemes=("https",))
    if callbacks is None:
        raise wrong("callbacks", 'a list of https origins: ["https://app.example"]')
    private = _origins(values.get("callbacks_private", []), schemes=("https", "http"))
    if private is None:
        raise wrong("callbacks_private", 'a list of origins: ["http://127.0.0.1:9000"]')
    return ServeConfig(**{**values, "callbacks": callbacks, "callbacks_private": private})


def _origins(values: Any, *, schemes: tuple[str, ...]) -> frozenset[str] | None:
    """Return the origins in a list; None if it has something else."""
    try:
        found = [parse(text) for text in values] if isinstance(values, list) else None
    except (ToolError, TypeError):
        return None
    if found is None or any(url.target != "/" or url.scheme not in schemes for url in found):
        return None
    return frozenset(url.origin for url in found)


def _is_safe_url(text: Any) -> bool:
    try:
        url = parse(text) if isinstance(text, str) else None
    except ToolError:
        return False
    return url is not None and not url.query and (url.scheme == "https" or url.host in LOOPBACK_HOSTS)
