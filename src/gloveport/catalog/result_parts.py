"""Parts of a result's type: the part at a place such as `items[].spec`, and a type cut to what an agent should read.

A place is written as programs read a value: names after dots, `[]` for each item of a list or each value of a record, and
`["a name"]` for a name with other characters.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from gloveport.catalog.typescript_stubs import (
    IDENTIFIER,
    MAX_PROPERTIES,
    clean,
    resolve,
    schema_comment,
)

CHARS_PER_TOKEN = 4
MAX_RESULT_TOKENS = 1500
"""Of the type of a result. What lies deeper is left for a question of its own."""
MAX_RESULT_CHARS = MAX_RESULT_TOKENS * CHARS_PER_TOKEN
MAX_PLACE_CHARS = 1000
MAX_SHOWN_NAMES = 20
MAX_NODES = 4000
MAX_NESTED = 50
MAX_MEMBERS = 100
MAX_COMMENT_CHARS = 120
LINE_CHARS = 12
"""What a property takes beside its name and its comment: indentation, type and punctuation."""

_STEP = re.compile(r'\.?([^.\[\]"]+)|(\[\])|\[("(?:[^"\\]|\\.)*")\]')
_STRUCTURE = frozenset({"$ref", "$defs", "properties", "items", "prefixItems", "additionalProperties"})
_COMBINED = ("allOf", "anyOf", "oneOf")


class UnknownPart(ValueError):
    """A place that a result does not have; the text says what it has instead."""


class ShortResult(NamedTuple):
    """A result's schema within the budget, and the places of the parts that were left out, the nearest first."""

    schema: Mapping[str, Any]
    left_out: tuple[str, ...]


def part_at(schema: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the schema at a place of a result; raises UnknownPart."""
    node: Any = schema
    done = 0
    for step in _steps(place):
        found = _below(schema, node, step)
        if found is None:
            raise UnknownPart(_no_such_part(schema, node, place[:done], place))
        node, done = found, done + len(step[0])
    return {**(node if isinstance(node, Mapping) else {}), "$defs": schema.get("$defs", {})}


def _steps(place: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    end = 0
    while end < len(place) and len(place) <= MAX_PLACE_CHARS and (step := _STEP.match(place, end)):
        found.append(step)
        end = step.end()
    if not found or end < len(place):
        raise UnknownPart(f'{place[:100]!r} is not a place such as "items[].spec"')
    return found


def _below(root: Mapping[str, Any], node: Any, step: re.Match[str]) -> Any:
    name = step[1] if step[1] is not None else json.loads(step[3]) if step[3] is not None else None
    members = list(_members(root, node))
    found: list[Any] = []
    for member in members:
        properties = member.get("properties")
        if name is None and member.get("items") is not None:
            found.append(member["items"])
        elif name is not None and isinstance(properties, Mapping) and name in properties:
            found.append(properties[name])
    if name is None or not found:  # a record has any name
        found += [rest for member in members if isinstance(rest := member.get("additionalProperties"), Mapping)]
    return found[0] if len(found) == 1 else {"anyOf": found} if found else None


def _members(root: Mapping[str, Any], node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the schema that a node refers to, and the parts that it is combined from."""
    waiting, followed = deque([node]), set[str]()
    for _ in range(MAX_MEMBERS):
        if not waiting:
            return
        member = waiting.popleft()
        if isinstance(member, Mapping):
            yield member
            target = member.get("$ref")
            if isinstance(target, str) and target not in followed:
                followed.add(target)
                waiting.append(resolve(root, target))
            waiting.extend(one for word in _COMBINED for one in _listed(member.get(word)))


def _no_such_part(root: Mapping[str, Any], node: Any, place: str, whole: str) -> str:
    names: dict[str, None] = {}
    for member in _members(root, node):
        properties = member.get("properties")
        names |= dict.fromkeys(properties if isinstance(properties, Mapping) else ())
        names |= {"[]": None} if member.get("items") is not None else {}
    listed = ", ".join(clean(name) for name in list(names)[:MAX_SHOWN_NAMES]) or "no known parts"
    more = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    where = f"`{clean(place)}`" if place else "the result"
    return f"there is no `{clean(whole[:100])}`: {where} has {listed}{more}"


def shortened(schema: Mapping[str, Any], max_chars: int = MAX_RESULT_CHARS) -> ShortResult:
    """Return the schema with the objects that fit the budget, the nearest first. The outermost is always there.

    Descriptions are cut to their first sentence: the names and types of more parts are worth more.
    """
    return _Shortener(schema, max_chars).result()


class _Node(NamedTuple):
    """A schema to copy, the copy to fill, its place, its indentation, and the references that led to it.

    `nested` counts the schemas around it that take no lines of their own.
    """

    schema: Any
    copy: dict[str, Any]
    place: str = ""
    depth: int = 0
    around: frozenset[str] = frozenset()
    nested: int = 0


class _Shortener:
    """Copies a schema breadth first, with references resolved, until the budget is used up."""

    def __init__(self, root: Mapping[str, Any], max_chars: int) -> None:
        self._root = root
        self._left = max_chars
        self._nodes = 0
        self._started = False
        self._waiting: deque[_Node] = deque()
        self._left_out: dict[str, None] = {}

    def result(self) -> ShortResult:
        """Return the copy."""
        out: dict[str, Any] = {}
        self._waiting.append(_Node(self._root, out))
        while self._waiting:
            self._copy(self._waiting.popleft())
        return ShortResult(out, tuple(place for place in self._left_out if place))

    def _copy(self, node: _Node) -> None:
        schema = node.schema
        self._nodes += 1
        if not isinstance(schema, Mapping) or self._nodes > MAX_NODES or node.nested > MAX_NESTED:
            return
        node.copy.update({key: value for key, value in schema.items() if key not in _STRUCTURE and key not in _COMBINED})
        node.copy.update(_annotations(schema))
        target = schema.get("$ref")
        if isinstance(target, str):
            if target in node.around:
                self._leave_out(node)
            else:
                found = resolve(self._root, target)
                self._copy(node._replace(schema=found, around=node.around | {target}, nested=node.nested + 1))
            node.copy.update(_annotations(schema))
            return
        if isinstance(schema.get("properties"), Mapping) and not self._add_properties(node, schema["properties"]):
            return
        for word in _COMBINED:
            if members := _listed(schema.get(word)):
                node.copy[word] = [self._copied(node, member, node.place) for member in members]
        if isinstance(schema.get("items"), Mapping):
            node.copy["items"] = self._copied(node, schema["items"], f"{node.place}[]")
        if members := _listed(schema.get("prefixItems")):
            node.copy["prefixItems"] = [self._copied(node, member, f"{node.place}[]") for member in members]
        others = schema.get("additionalProperties")
        if others is not None:
            copied = isinstance(others, Mapping)
            node.copy["additionalProperties"] = self._copied(node, others, f"{node.place}[]") if copied else others

    def _copied(self, node: _Node, schema: Any, place: str) -> Any:
        """Return the copy of a member that takes no lines of its own."""
        copy: dict[str, Any] = {}
        self._copy(_Node(schema, copy, place, node.depth, node.around, node.nested + 1))
        return copy

    def _add_properties(self, node: _Node, properties: Mapping[str, Any]) -> bool:
        shown = dict(islice(properties.items(), MAX_PROPERTIES + 1))
        line = LINE_CHARS + 2 * node.depth
        cost = 0
        for name, part in shown.items():
            self._nodes += 1
            cost += len(name) + min(len(schema_comment(part)), MAX_COMMENT_CHARS) + line
            if self._started and (cost > self._left or self._nodes > MAX_NODES):
                self._leave_out(node)
                return False
        self._started = True
        self._left -= cost
        node.copy["properties"] = copies = {name: dict[str, Any]() for name in shown}
        for name, part in shown.items():
            place = f"{node.place}{_written(name, first=not node.place)}"
            self._waiting.append(_Node(part, copies[name], place, node.depth + 1, node.around))
        return True

    def _leave_out(self, node: _Node) -> None:
        kept = {key: node.copy[key] for key in ("description", "deprecated") if key in node.copy}
        node.copy.clear()
        node.copy.update(kept)
        self._left_out[node.place] = None


def _annotations(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of a part: whether it is deprecated, and the first sentence of its description."""
    found = {key: schema[key] for key in ("description", "deprecated") if key in schema}
    if isinstance(found.get("description"), str):
        sentence = re.split(r"(?<=[.!?])\s", found["description"][: 2 * MAX_COMMENT_CHARS].strip(), maxsplit=1)[0]
        cut = len(sentence) > MAX_COMMENT_CHARS
        found["description"] = f"{sentence[: MAX_COMMENT_CHARS - 1]}…" if cut else sentence
    return found


def _written(name: str, *, first: bool) -> str:
    if not IDENTIFIER.match(name):
        return f"[{json.dumps(name)}]"
    return name if first else f".{name}"


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
