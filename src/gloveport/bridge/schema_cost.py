"""How many alternatives a schema may make a validator try on one value.

References inside `anyOf` multiply: twenty definitions that each name the next one twice are a million tries, and a
definition is written by others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

IN_PLACE = ("anyOf", "oneOf", "allOf")
ONE_IN_PLACE = ("not", "if", "then", "else")
ENDLESS = 10**9


def branches_of(root: Mapping[str, Any]) -> int:
    """The most alternatives at any place of the schema; ENDLESS where one leads back to itself without looking deeper."""
    counted: dict[int, int] = {}
    return max((_branches(node, root, counted, set()) for node in _nodes(root)), default=0)


def _branches(node: Any, root: Mapping[str, Any], counted: dict[int, int], under_way: set[int]) -> int:
    if not isinstance(node, Mapping):
        return 1
    key = id(node)
    if key in counted:
        return counted[key]
    if key in under_way or len(under_way) > 200:
        return ENDLESS
    under_way.add(key)
    total = 1 + sum(_branches(member, root, counted, under_way) for member in members(node, root))
    under_way.discard(key)
    counted[key] = min(total, ENDLESS)
    return counted[key]


def members(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that a value is held against where it is held against this one."""
    for word in IN_PLACE:
        if isinstance(node.get(word), Sequence) and not isinstance(node[word], str):
            yield from node[word]
    for word in ONE_IN_PLACE:
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
