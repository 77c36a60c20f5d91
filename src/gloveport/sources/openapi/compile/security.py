"""Compile security schemes into credential slots, and find which of them an operation needs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.openapi.compile.addresses import slot_name
from gloveport.sources.openapi.compile.document.document import Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference, References
from gloveport.sources.openapi.compile.parameters import Argument
from gloveport.sources.openapi.frames import MAX_SLOTS
from gloveport.sources.openapi.reserved_headers import AUTHORIZATION
from gloveport.sources.texts import clean

MAX_SCHEME_DESCRIPTION_CHARS = 300
MAX_SCOPES = 500
MAX_URL_CHARS = 2000
MAX_SCHEMES = MAX_SLOTS - 1
"""One slot remains for the header `Authorization` as a parameter."""
WHOLE_HEADER = "The whole header, such as `Bearer TOKEN`."

Alternatives = tuple[tuple[str, ...], ...]
"""Each names the slots that are needed together."""
Slots = dict[str, CredentialSlot]
"""The slots, by the name of their scheme in the document."""


def credential_slots(schemes: Any, references: References, warn: Warn) -> Slots:
    """Return a slot for each scheme whose secret a request can carry."""
    found: Slots = {}
    taken: dict[str, object] = {}
    for name, node in islice(schemes.items(), MAX_SCHEMES) if isinstance(schemes, dict) else ():
        try:
            scheme = references.follow(node).value
        except DanglingReference as error:
            warn(f"security scheme {name!a}", str(error))
            continue
        slot = _slot(slot_name(str(name), taken), scheme) if isinstance(scheme, dict) else None
        if slot is None:
            kind = scheme.get("scheme") or scheme.get("type") if isinstance(scheme, dict) else None
            warn(f"security scheme {str(name)[:60]!a}", f"its kind {str(kind)[:40]!a} is not supported")
            continue
        taken[slot.name] = slot
        found[str(name)] = slot
    return found


def _slot(name: str, scheme: dict[str, Any]) -> CredentialSlot | None:
    description = clean(scheme.get("description"), MAX_SCHEME_DESCRIPTION_CHARS)
    kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    parameter, place = scheme.get("name"), scheme.get("in")
    if kind == "apiKey" and isinstance(parameter, str) and parameter and place in ("header", "query", "cookie"):
        return CredentialSlot(name, place, parameter, description)
    if kind == "basic" or (kind == "http" and way == "basic"):
        return CredentialSlot(name, "basic", "", description)
    if kind == "http" and way == "bearer":
        return CredentialSlot(name, "bearer", "", description)
    if kind == "oauth2":
        return CredentialSlot(name, "oauth2", "", description, _scopes(scheme), *_sign_in_urls(scheme))
    if kind == "openIdConnect":
        url = scheme.get("openIdConnectUrl")
        discovery = url if isinstance(url, str) and len(url) <= MAX_URL_CHARS else ""
        return CredentialSlot(name, "openid", "", description, discovery_url=discovery)
    return None


def _scopes(scheme: dict[str, Any]) -> tuple[str, ...]:
    flows = scheme.get("flows")
    listed = [scheme, *(flows.values() if isinstance(flows, dict) else ())]
    scopes = [flow.get("scopes") for flow in listed if isinstance(flow, dict)]
    names = dict.fromkeys(str(name) for some in scopes if isinstance(some, dict) for name in some)
    return tuple(names)[:MAX_SCOPES]


def _sign_in_urls(scheme: dict[str, Any]) -> tuple[str, str]:
    """Return the authorization URL and the token URL of the first flow that has a token URL, with a page if one has."""
    flows = scheme.get("flows")
    listed = (
        [flows.get(name) for name in ("authorizationCode", "clientCredentials")] if isinstance(flows, dict) else [scheme]
    )
    for flow in listed:
        token = flow.get("tokenUrl") if isinstance(flow, dict) else None
        if isinstance(flow, dict) and isinstance(token, str) and len(token) <= MAX_URL_CHARS:
            page = flow.get("authorizationUrl")
            return page if isinstance(page, str) and len(page) <= MAX_URL_CHARS else "", token
    return "", ""


def with_authorization(security: Alternatives, slots: Slots, header: Argument) -> Alternatives:
    """Return the alternatives of an operation whose parameters include the header `Authorization`.

    The specification ignores that parameter where a security scheme of the operation sends the header. Elsewhere its value
    is a secret all the same: it fills a slot of the document, or one that is added to `slots`.
    """
    senders = {slot.name for slot in slots.values() if _sends_authorization(slot)}
    if any(name in senders for names in security for name in names):
        return security
    slot = next((slot for slot in slots.values() if slot.name in senders), None)
    if slot is None:
        name = slot_name(AUTHORIZATION, {slot.name: slot for slot in slots.values()})
        description = f"{WHOLE_HEADER} {header.schema.get('description', '')}"
        slot = CredentialSlot(name, "header", "Authorization", clean(description, MAX_SCHEME_DESCRIPTION_CHARS))
        slots[WHOLE_HEADER] = slot
    with_header = tuple((*names, slot.name) for names in security or ((),))
    return with_header if header.parameter.required else (*with_header, *(security or ((),)))


def _sends_authorization(slot: CredentialSlot) -> bool:
    return slot.kind in ("basic", "bearer", "oauth2", "openid") or (slot.kind, slot.parameter.lower()) == (
        "header",
        AUTHORIZATION,
    )


def security_alternatives(security: Any, known: Mapping[str, CredentialSlot]) -> Alternatives:
    """Return the alternatives of a `security` list as slot names, without those that need an unknown scheme."""
    found: dict[tuple[str, ...], None] = {}
    for one in security if isinstance(security, list) else ():
        if isinstance(one, dict) and all(name in known for name in one):
            found[tuple(known[name].name for name in one)] = None
    return tuple(found)
