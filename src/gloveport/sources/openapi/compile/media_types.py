"""Media types: the kind of body that each means, and which of several to offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

BodyKind = Literal["json", "form", "multipart", "bytes", "text"]

# The first kind that a body has is used unless the program chooses another.
KIND_PREFERENCE: tuple[BodyKind, ...] = ("json", "multipart", "form", "text", "bytes")
_TEXTUAL = ("/xml", "+xml", "/yaml", "+yaml", "/x-yaml", "/graphql", "/javascript", "/x-ndjson", "/sql", "+jsonl")


def kind_of(media_type: str, schema: Any = None) -> BodyKind:
    """Return the kind of body that a media type means."""
    plain = media_type.partition(";")[0].strip().lower()
    if is_binary(schema) and not plain.startswith("multipart/"):
        return "bytes"
    if plain.endswith(("/json", "+json")) or plain in ("*/*", "application/*", "*", ""):
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    if plain.startswith("multipart/"):
        return "multipart"
    return "text" if plain.startswith("text/") or plain.endswith(_TEXTUAL) else "bytes"


def is_json(media_type: str) -> bool:
    """Return True for JSON itself, False for formats that are based on it."""
    return media_type.partition(";")[0].strip().lower() == "application/json"


def is_json_patch(media_type: str) -> bool:
    """Return True for a list of changes to JSON."""
    return media_type.partition(";")[0].strip().lower() == "application/json-patch+json"


def sent_as(media_type: str) -> str:
    """Return the media type to send: JSON for a range such as `*/*`."""
    return media_type if "*" not in media_type and "/" in media_type else "application/json"


def is_binary(schema: Any) -> bool:
    """Return True for a schema, of any dialect, that means a file or raw bytes."""
    if not isinstance(schema, dict):
        return False
    if schema.get("type") == "file":
        return True
    if schema.get("type") not in ("string", None):
        return False
    if schema.get("format") == "binary":
        return True
    raw = schema.get("contentMediaType")
    return raw is not None and "contentEncoding" not in schema and not str(raw).startswith(("text/", "application/json"))


def offered_contents(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the media types of a body that are worth offering, the preferred first, with their `content` entries."""
    known = {
        name: entry if isinstance(entry, dict) else {} for name, entry in content.items() if isinstance(name, str) and name
    }
    kinds = {name: kind_of(name, entry.get("schema")) for name, entry in known.items()}
    ranked = sorted(known, key=lambda name: (KIND_PREFERENCE.index(kinds[name]), not is_json(name)))
    out: dict[str, Any] = {}
    for name in ranked:
        schema = known[name].get("schema")
        twin = any(kinds[other] == kinds[name] and known[other].get("schema") == schema for other in out)
        # Beside `application/json`, types such as `text/json` add nothing. Without it they may be distinct patch formats.
        alias = twin and (kinds[name] != "json" or is_json(next(iter(out))))
        # A program does not need XML when there is another type.
        xml = bool(out) and name.partition(";")[0].endswith(("/xml", "+xml"))
        if not (alias and kinds[name] in ("json", "form", "multipart")) and not xml:
            out[name] = known[name]
    return out
