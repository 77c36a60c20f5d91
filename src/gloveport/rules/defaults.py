"""The defaults that a tool's schema states for arguments that a call leaves out: a condition has to hold with them too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MAX_DEFAULTS_DEPTH = 8
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_REFERRING = frozenset(("$ref", *_ALTERNATIVES))
_NONE: Mapping[str, Any] = {}
_MAPPINGS = (dict, Mapping)  # a dict is recognised at once, anything else in a tenth of the time of a decision
_SCALARS = (str, int, float, type(None))


def with_defaults(args: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return arguments with the defaults of what they leave out; the same object if none are wanted."""
    return _completed(args, schema, schema, MAX_DEFAULTS_DEPTH)


def _completed(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if isinstance(value, _SCALARS) or not depth or not isinstance(schema, _MAPPINGS):
        return value
    for part in _parts(schema, root):
        if isinstance(value, _MAPPINGS):
            value = _completed_object(value, part, root, depth)
        elif isinstance(value, list | tuple) and "items" in part:
            value = [_completed(item, part["items"], root, depth - 1) for item in value]
    return value


def _completed_object(value: Mapping[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    changed: dict[str, Any] = {}
    for name, inner in schema.get("properties", _NONE).items():
        if name not in value:
            if isinstance(inner, _MAPPINGS) and "default" in inner:
                changed[name] = inner["default"]
        elif not isinstance(given := value[name], _SCALARS):
            changed[name] = _completed(given, inner, root, depth - 1)
    return {**value, **changed} if changed else value


def _parts(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return a schema and those that it refers to for the same value, each once. Every alternative counts."""
    if schema.keys().isdisjoint(_REFERRING):
        return (schema,)
    found, left = dict[int, Mapping[str, Any]](), [schema]
    while left:
        part = left.pop()
        if isinstance(part, _MAPPINGS) and id(part) not in found:
            found[id(part)] = part
            left.append(root.get("$defs", _NONE).get(str(part.get("$ref")).rpartition("/")[2]))
            left.extend(one for keyword in _ALTERNATIVES for one in part.get(keyword, ()))
    return found.values()
