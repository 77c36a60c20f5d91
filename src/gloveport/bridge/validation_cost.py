"""Estimate what validating a value costs, before the validator runs: it holds the interpreter lock until it is done.

`schema_cost` bounds what a schema can make of any value; here a schema meets the value that a program has passed. The
product of both bounds is enough to let nearly every call pass. For the others, pairs of schema and value are counted, as
the validator would visit them if it never stopped early. Explaining errors costs more than finding out whether a value is
valid: the validator copies what it visits, and goes down every alternative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gloveport.schema_cost import UNBOUNDED, SchemaCost, pattern_states

MAX_UNITS = 600_000
"""A unit is the evaluation of a small schema for a small value, about 35 ns."""
MAX_EXPLAIN_UNITS = 4000
UNITS_PER_KEY = 8
UNITS_PER_COMPARED_VALUE = 10
STATES_PER_UNIT = 3  # so many states of a pattern take as long as one unit, for each character
MAX_UNITS_AT_ONCE = 100_000
"""What may be validated on the event loop: a call validates its arguments up to four times."""
BYTES_PER_KEY = 4
# Keywords whose schemas apply to the same value: lists of schemas, and single ones.
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf")
SINGLE_SCHEMAS = ("not", "if", "then", "else")
# Keywords whose schema applies to every property, or every item.
PROPERTY_SCHEMAS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
ITEM_SCHEMAS = ("items", "unevaluatedItems", "contains")
# Keywords that make the validator look at all members of an object or array.
_OBJECT_KEYWORDS = frozenset({*PROPERTY_SCHEMAS, "properties", "patternProperties", "required"})
_ARRAY_KEYWORDS = frozenset({*ITEM_SCHEMAS, "prefixItems"})
# Keywords that make it compare whole values, with all that is in them.
_COMPARING_KEYWORDS = frozenset({"const", "enum", "uniqueItems"})
# Keywords that say nothing about what a value holds, and cost the same for every value.
_FLAT_KEYWORDS = frozenset(
    {"type", "title", "description", "default", "examples", "format", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "deprecated", "readOnly", "writeOnly", "$comment"}
)
_SCALARS = frozenset({int, float, bool, type(None)})


def is_quick(cost: SchemaCost, size: float) -> bool:
    """Return True when no value whose JSON has so many bytes can take long; nearly every call is decided by this alone."""
    keys, chars = UNITS_PER_KEY * cost.branches / BYTES_PER_KEY, cost.pattern_states / STATES_PER_UNIT
    return size * (keys + chars) <= MAX_UNITS_AT_ONCE


def is_too_expensive(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True when validating the value takes too long. The validator remembers where it came to a reference."""
    return _exceeds(schema, value, MAX_UNITS, set())


def _exceeds(schema: Mapping[str, Any], value: Any, left: int, visited: set[tuple[int, int]] | None) -> bool:
    waiting = [iter([(schema, value)])]
    while waiting:
        pair = next(waiting[-1], None)
        if pair is None:
            waiting.pop()
            continue
        if visited is not None and isinstance(pair[0], Mapping) and "$ref" in pair[0]:
            ids = id(pair[0]), id(pair[1])
            if ids in visited:
                continue
            visited.add(ids)
        left -= _units(*pair)
        if left < 0:
            return True
        waiting.append(_below(*pair, schema))
    return False


def is_expensive_to_explain(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True when listing every error would take too long. It visits a pair as often as it comes to it."""
    return holds_more(value, MAX_EXPLAIN_UNITS) or _exceeds(schema, value, MAX_EXPLAIN_UNITS, None)


def holds_more(value: Any, max_values: int) -> bool:
    """Return True when a value holds more values and keys."""
    return _size(value, max_values) > max_values


def _size(value: Any, enough: int) -> int:
    """Return the number of values and keys, and of 100 characters each, in a value; more than `enough` is not counted."""
    total, waiting = 0, [value]
    while waiting and total <= enough:
        item = waiting.pop()
        total += 1
        if isinstance(item, str):
            total += len(item) // 100
        elif isinstance(item, dict | list):
            total += len(item)
            if total <= enough:
                waiting += item.values() if isinstance(item, dict) else item
    return total


def _units(node: Any, value: Any) -> int:
    """Return what one schema costs for one value, without the schemas in it."""
    if not isinstance(node, Mapping):
        return 1
    kind = type(value)
    if kind in _SCALARS:
        return 1 + len(node.get("enum", ())) // 4 if "enum" in node else 1
    if (kind is dict or kind is list) and not _COMPARING_KEYWORDS.isdisjoint(node):
        return UNITS_PER_COMPARED_VALUE * _size(value, MAX_UNITS)
    if kind is dict:
        if _OBJECT_KEYWORDS.isdisjoint(node):
            return 1
        names = sum(map(len, value)) if "patternProperties" in node or "propertyNames" in node else 0
        states = sum(pattern_states(pattern) or UNBOUNDED for pattern in node.get("patternProperties", ()))
        return 1 + UNITS_PER_KEY * len(value) + names * states // STATES_PER_UNIT
    if kind is list:
        if _ARRAY_KEYWORDS.isdisjoint(node):
            return 1
        return 1 + len(value) * (1 + sum(word in node and _is_flat(node[word]) for word in ITEM_SCHEMAS))
    units = 1 + len(value) // 1000 if isinstance(value, str) else 1
    if "pattern" in node and isinstance(value, str):
        units += len(value) * (pattern_states(node["pattern"]) or 1) // STATES_PER_UNIT
    return units


def _is_flat(node: Any) -> bool:
    """Return whether a schema looks at no item and no character of a value: then it costs one unit for any value."""
    return not isinstance(node, Mapping) or _FLAT_KEYWORDS.issuperset(node)


def _below(node: Any, value: Any, root: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if not isinstance(node, Mapping):
        return
    for member in _members(node, root):
        yield member, value
    if isinstance(value, dict):
        yield from _below_object(node, value)
    elif isinstance(value, list):
        own = node.get("prefixItems")
        yield from zip(own if isinstance(own, list) else (), value, strict=False)
        for word in ITEM_SCHEMAS:
            if word in node and not _is_flat(node[word]):  # `_units` has counted the items of a flat one
                yield from ((node[word], item) for item in value)


def _below_object(node: Mapping[str, Any], value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    own, patterns = node.get("properties"), node.get("patternProperties")
    everywhere = list(patterns.values()) if isinstance(patterns, Mapping) else []
    everywhere += [node[word] for word in PROPERTY_SCHEMAS if word in node]
    for name, item in value.items():
        if isinstance(own, Mapping) and name in own:
            yield own[name], item
        yield from ((each, item) for each in everywhere)


def _members(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas that apply to a value together with this one."""
    for word in SCHEMA_LISTS:
        if isinstance(node.get(word), Sequence) and not isinstance(node[word], str):
            yield from node[word]
    for word in SINGLE_SCHEMAS:
        if word in node:
            yield node[word]
    if isinstance(node.get("dependentSchemas"), Mapping):
        yield from node["dependentSchemas"].values()
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        found: Any = root
        for part in target[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        yield found
