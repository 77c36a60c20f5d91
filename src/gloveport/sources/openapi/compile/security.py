"""Security schemes → credential slots, and which of them an operation needs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from gloveport.sources.openapi.compile.addresses import legal_slot
from gloveport.sources.openapi.compile.document.references import Dangling, References
from gloveport.sources.openapi.compile.schemas import Warn
from gloveport.sources.openapi.operation import Slot
from gloveport.sources.texts import clean

MOST_DESCRIPTION = 300
MOST_SCOPES = 500
MOST_SCHEMES = 500

Slots = dict[str, Slot]
"""The slots by the name of their scheme in the document."""


def slots(schemes: Any, references: References, warn: Warn) -> Slots:
    """A slot for each scheme whose secret we can carry."""
    found: Slots = {}
    taken: dict[str, object] = {}
    for name, node in islice(schemes.items(), MOST_SCHEMES) if isinstance(schemes, dict) else ():
        try:
            scheme = references.follow(node).value
        except Dangling as error:
            warn(f"security scheme {name!a}", str(error))
            continue
        slot = _slot(legal_slot(str(name), taken), scheme) if isinstance(scheme, dict) else None
        if slot is None:
            kind = scheme.get("scheme") or scheme.get("type") if isinstance(scheme, dict) else None
            warn(f"security scheme {str(name)[:60]!a}", f"its kind {str(kind)[:40]!a} is not supported")
            continue
        taken[slot.name] = slot
        found[str(name)] = slot
    return found


def _slot(name: str, scheme: dict[str, Any]) -> Slot | None:
    description = clean(scheme.get("description"), MOST_DESCRIPTION)
    kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    parameter, place = scheme.get("name"), scheme.get("in")
    if kind == "apiKey" and isinstance(parameter, str) and parameter and place in ("header", "query", "cookie"):
        return Slot(name, place, parameter, description)
    if kind == "basic" or (kind == "http" and way == "basic"):
        return Slot(name, "basic", "", description)
    if kind == "http" and way == "bearer":
        return Slot(name, "bearer", "", description)
    if kind == "oauth2":
        return Slot(name, "oauth2", "", description, _scopes(scheme))
    return Slot(name, "openid", "", description) if kind == "openIdConnect" else None


def _scopes(scheme: dict[str, Any]) -> tuple[str, ...]:
    flows = scheme.get("flows")
    listed = [scheme, *(flows.values() if isinstance(flows, dict) else ())]
    scopes = [flow.get("scopes") for flow in listed if isinstance(flow, dict)]
    names = dict.fromkeys(str(name) for some in scopes if isinstance(some, dict) for name in some)
    return tuple(names)[:MOST_SCOPES]


def needed(security: Any, known: Mapping[str, Slot]) -> tuple[tuple[str, ...], ...]:
    """The alternatives that a `security` list allows, as names of slots; those with an unknown scheme are left out."""
    found: dict[tuple[str, ...], None] = {}
    for one in security if isinstance(security, list) else ():
        if isinstance(one, dict) and all(name in known for name in one):
            found[tuple(known[name].name for name in one)] = None
    return tuple(found)
