"""Estimate what a schema costs a validator, before the validator runs: schemas are written by others.

References inside `anyOf` multiply: twenty definitions that each name the next one twice make a million alternatives.
`max_branches` measures that for the schema alone. Explaining errors costs more than finding out whether a value is valid:
a check stops at the first error and remembers what it has seen, but a list of errors goes down every alternative at every
level, and a value twenty levels deep makes that a million times as much. `is_expensive_to_explain` measures that for a
schema and a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

UNBOUNDED_BRANCHES = 10**9
MAX_REFERENCE_CHAIN = 200
MAX_EXPLAIN_STEPS = 2000
# Keywords whose schemas apply to the same value: lists of schemas, and single ones.
SCHEMA_LISTS = ("anyOf", "oneOf", "allOf")
SINGLE_SCHEMAS = ("not", "if", "then", "else")
# Keywords whose schema applies to every property, or every item.
PROPERTY_SCHEMAS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
ITEM_SCHEMAS = ("items", "unevaluatedItems", "contains")


def max_branches(root: Mapping[str, Any]) -> int:
    """Return how many alternatives one value can be checked against, at the worst place of the schema.

    UNBOUNDED_BRANCHES where a schema leads back to itself for the same value.
    """
    counted: dict[int, int] = {}
    return max((_branches(node, root, counted, set()) for node in _nodes(root)), default=0)


def _branches(node: Any, root: Mapping[str, Any], counted: dict[int, int], under_way: set[int]) -> int:
    if not isinstance(node, Mapping):
        return 1
    key = id(node)
    if key in counted:
        return counted[key]
    if key in under_way or len(under_way) > MAX_REFERENCE_CHAIN:
        return UNBOUNDED_BRANCHES
    under_way.add(key)
    total = 1 + sum(_branches(member, root, counted, under_way) for member in _members(node, root))
    under_way.discard(key)
    counted[key] = min(total, UNBOUNDED_BRANCHES)
    return counted[key]


def _members(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas that apply to a value together with this one."""
    for word in SCHEMA_LISTS:
        if isinstance(node.get(word), Sequence) and not isinstance(node[word], str):
            yield from node[word]
    for word in SINGLE_SCHEMAS:
        if word in node:
            yield node[word]
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        found: Any = root
        for part in target[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        yield found


def _nodes(root: Any) -> Iterator[Mapping[str, Any]]:
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += node.values()
        elif isinstance(node, Sequence) and not isinstance(node, str | bytes):
            waiting += node


def is_expensive_to_explain(schema: Mapping[str, Any], value: Any) -> bool:
    """Return True when listing every error would visit more than `MAX_EXPLAIN_STEPS` pairs of schema and value."""
    waiting = [iter([(schema, value)])]
    steps = 0
    while waiting:
        pair = next(waiting[-1], None)
        if pair is None:
            waiting.pop()
            continue
        steps += 1
        if steps > MAX_EXPLAIN_STEPS:
            return True
        waiting.append(_below(*pair, schema))
    return False


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
            if word in node:
                yield from ((node[word], item) for item in value)


def _below_object(node: Mapping[str, Any], value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    own, patterns = node.get("properties"), node.get("patternProperties")
    everywhere = list(patterns.values()) if isinstance(patterns, Mapping) else []
    everywhere += [node[word] for word in PROPERTY_SCHEMAS if word in node]
    for name, item in value.items():
        if isinstance(own, Mapping) and name in own:
            yield own[name], item
        yield from ((each, item) for each in everywhere)
