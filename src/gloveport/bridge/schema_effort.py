"""How much work it is to say everything that is wrong with a value.

Whether a value fits, a validator tells quickly: it stops at the first problem, and knows what it has seen. To name the
problems it goes down every alternative at every level, which a value twenty levels deep makes a million times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gloveport.bridge.schema_cost import members

MOST_STEPS = 2000
EVERY_KEY = ("additionalProperties", "unevaluatedProperties", "propertyNames")
EVERY_ITEM = ("items", "unevaluatedItems", "contains")


def takes_long(schema: Mapping[str, Any], value: Any) -> bool:
    """True when a validator that names every problem would look at more than `MOST_STEPS` pairs of schema and value."""
    waiting = [iter([(schema, value)])]
    steps = 0
    while waiting:
        pair = next(waiting[-1], None)
        if pair is None:
            waiting.pop()
            continue
        steps += 1
        if steps > MOST_STEPS:
            return True
        waiting.append(_below(*pair, schema))
    return False


def _below(node: Any, value: Any, root: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if not isinstance(node, Mapping):
        return
    for member in members(node, root):
        yield member, value
    if isinstance(value, dict):
        yield from _properties(node, value)
    elif isinstance(value, list):
        own = node.get("prefixItems")
        yield from zip(own if isinstance(own, list) else (), value, strict=False)
        for word in EVERY_ITEM:
            if word in node:
                yield from ((node[word], item) for item in value)


def _properties(node: Mapping[str, Any], value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    own, patterns = node.get("properties"), node.get("patternProperties")
    everywhere = [*(patterns.values() if isinstance(patterns, Mapping) else ()), *(node[k] for k in EVERY_KEY if k in node)]
    for name, item in value.items():
        if isinstance(own, Mapping) and name in own:
            yield own[name], item
        yield from ((each, item) for each in everywhere)
