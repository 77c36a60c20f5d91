"""The defaults that a tool's schema states for arguments that a call leaves out: a condition has to hold with them too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEFAULTS_DEPTH = 8
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


def with_defaults(args: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments with the defaults of what they leave out; the same object if the schema states none for that."""
    return _completed(args, schema, schema, MAX_DEFAULTS_DEPTH)


def _completed(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if not depth or not isinstance(schema, Mapping) or not isinstance(value, Mapping | list | tuple):
        return value
    for part in _parts(schema, root, depth):
        if not isinstance(value, Mapping):
            items = [_completed(item, part.get("items"), root, depth - 1) for item in value]
            value = items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            continue
        changed: dict[str, Any] = {}
        for name, inner in part.get("properties", {}).items():
            if name in value:
                if (new := _completed(value[name], inner, root, depth - 1)) is not value[name]:
                    changed[name] = new
            elif isinstance(inner, Mapping) and "default" in inner:
                changed[name] = inner["default"]
        value = {**value, **changed} if changed else value
    return value


def _parts(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those that it refers to for the same value. One alternative of several counts as well as another."""
    yield schema
    if not depth:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(target := root.get("$defs", {}).get(reference.rpartition("/")[2]), Mapping):
        yield from _parts(target, root, depth - 1)
    for keyword in _ALTERNATIVES:
        for part in schema.get(keyword, ()):
            if isinstance(part, Mapping):
                yield from _parts(part, root, depth - 1)
