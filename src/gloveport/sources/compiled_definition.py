"""What compiled definitions of every kind share: a head for each tool, credential slots, references to shared schemas."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

SHARED_REFERENCE = re.compile(rb'"\$ref":"#/\$defs/([A-Za-z0-9_]+)"')
"""A reference to a shared schema in compact JSON. A quote inside a string is escaped, so no string matches."""


TOO_LARGE_SCHEMA = {"description": "Incomplete: this part of the definition is too large, and is left out."}
"""The schema that replaces one that is too large. It accepts anything."""


class ToolHead(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The part of a tool that stays in memory: enough to list it, search for it and check its argument names.

    `described` has the descriptions of the parameters.
    """

    address: str
    description: str
    parameters: tuple[str, ...]
    fingerprint: str
    writes: bool = False
    deprecated: bool = False
    pages: bool = False
    described: str = ""


class CredentialSlot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place for one secret of a source, and how requests carry it. OpenAPI calls this a security scheme.

    `authorization_url` and `token_url` are where the definition says that a person signs in; `discovery_url` is where it
    says that this is described (OpenID Connect). It may say anything, relative URLs included.
    """

    name: str
    kind: Literal["header", "query", "cookie", "basic", "bearer", "oauth2", "openid"]
    parameter: str = ""
    description: str = ""
    scopes: tuple[str, ...] = ()
    authorization_url: str = ""
    token_url: str = ""
    discovery_url: str = ""


def shared_schema_names(text: bytes) -> list[str]:
    """Return the names of the shared schemas that a JSON text refers to, in order; a name occurs once per reference."""
    return [name.decode() for name in SHARED_REFERENCE.findall(text)]
