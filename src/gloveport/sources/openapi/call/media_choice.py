"""Choose the media type of a body among several: the first that fits the value, by its type, its names and its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gloveport.sources.openapi.call.styles import LIST_TYPES
from gloveport.sources.openapi.operation import MediaContent


def fitting(contents: Sequence[MediaContent], value: Any) -> MediaContent:
    """Return the first content that fits the value best; the first of all when none fits."""
    raw = _has_bytes(value)
    return max(contents, key=lambda content: _fit(content, value, raw))  # the first of equals


def _fit(content: MediaContent, value: Any, raw: bool) -> tuple[bool, ...]:
    """Return what fits, the most important first. Bytes in JSON or a form would be base64 that nobody asked for."""
    carries = not raw or content.kind == "multipart" or (content.kind == "bytes" and isinstance(value, bytes))
    typed = (not content.takes or _type_of(value) in content.takes) and (content.kind != "bytes" or not _is_nested(value))
    if not isinstance(value, Mapping):
        return carries, typed
    complete = all(name in value for name in content.required)
    return carries, typed, complete, not content.properties or all(name in content.properties for name in value)


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, LIST_TYPES):
        return "array"
    return "null" if value is None else "string"


def _is_nested(value: Any) -> bool:
    return isinstance(value, (Mapping, *LIST_TYPES))


def _has_bytes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_bytes, value.values()))
    return any(map(_has_bytes, value)) if isinstance(value, LIST_TYPES) else isinstance(value, bytes)
