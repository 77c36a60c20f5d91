"""Make schemas accept more, where the validator would have too much to do.

A piece is the schema of a tool's arguments, or a definition that such schemas refer to. Pieces are changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gloveport.schema_cost import (
    ANNOTATIONS,
    MAX_ATTEMPTS,
    MAX_SCHEMA_SIZE,
    REFERS_TO_ITSELF,
    REPEATING_KEYWORDS,
    REVISITING_KEYWORDS,
    TOO_LARGE,
    TOO_MANY_STATES,
    CostExplorer,
    Excess,
    references_in,
    size_of,
    subschemas_of,
)

MAX_EXPLORER_STEPS = 2_000_000

# What is dropped first, second and so on; finally everything.
_BRANCHING = (*REPEATING_KEYWORDS, *REVISITING_KEYWORDS)
_LISTS = ("enum", "required", "dependentRequired")
_PATTERNS = ("pattern", "patternProperties")
_REPEATING_PARTS = ("patternProperties", "contains", *REVISITING_KEYWORDS)


class CostLoosener:
    """Loosens pieces that cost too much for one value. `definitions` are all that the pieces can refer to, by name."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._problems: dict[int, str] = {}
        self._explorer = CostExplorer(definitions, self._relax, MAX_EXPLORER_STEPS)

    def loosen(self, root: Any) -> None:
        """Loosen a schema of arguments and what it refers to."""
        self._explorer.explore(root)

    def loosened(self, pieces: Mapping[str, Any]) -> dict[str, str]:
        """Return the pieces of these that were loosened, with the problem of each."""
        if not self._problems:
            return {}
        return {
            name: self._problems[id(schema)]
            for name, piece in pieces.items()
            for schema in subschemas_of(piece)
            if id(schema) in self._problems
        }

    def _relax(self, excess: Excess) -> None:
        if excess.attempt == MAX_ATTEMPTS - 2:
            self._drop(excess.entry, None, excess.problem)
        elif excess.attempt == 1:
            self._drop(excess.here, _LISTS, excess.problem)
        elif excess.problem == TOO_MANY_STATES:
            self._drop(excess.here, _PATTERNS, excess.problem)
        else:
            keys = (*_BRANCHING, "$ref") if excess.problem == REFERS_TO_ITSELF else _BRANCHING
            self._drop(excess.here, keys, excess.problem)
            self._drop(excess.around, _REPEATING_PARTS, excess.problem)

    def _drop(self, schemas: Iterable[dict[str, Any]], keys: Iterable[str] | None, problem: str) -> None:
        for schema in schemas:
            found = [key for key in (schema if keys is None else keys) if key in schema]
            for key in found:
                del schema[key]
            if "patternProperties" in found or "$ref" in found:
                # What the dropped keyword described would now be one of the other properties.
                schema.pop("additionalProperties", None)
            if found:
                self._problems[id(schema)] = problem


def allow_more_where_negated(pieces: Mapping[str, Any], loosened: Iterable[str]) -> set[str]:
    """Loosen what negates or counts matches of a schema that accepts more than it did; return the pieces that changed.

    That is every piece that leads to one of the loosened ones: `not` a looser schema would be a stricter one.
    """
    affected = set(loosened)
    users: dict[str, list[str]] = {}
    for name, piece in pieces.items():
        for used in references_in(piece):
            users.setdefault(used, []).append(name)
    waiting = list(affected)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in affected:
                affected.add(user)
                waiting.append(user)
    return {name for name in affected & pieces.keys() if sum(map(_drop_negation, subschemas_of(pieces[name])))}


def _drop_negation(schema: dict[str, Any]) -> bool:
    before = len(schema)
    for key in ("not", "if", "then", "else", "maxContains"):
        schema.pop(key, None)
    changed = len(schema) < before
    if "oneOf" in schema:
        alternatives = {"anyOf": schema.pop("oneOf")}
        if "anyOf" in schema:
            schema["allOf"] = [*schema.get("allOf", ()), alternatives]
        else:
            schema |= alternatives
        changed = True
    return changed


class SizeLoosener:
    """Cuts the schemas of arguments to what the validator can compile in time. `definitions` must not change any more."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._sizes = {name: _size(piece) for name, piece in definitions.items()}
        self._uses = {name: references_in(piece) for name, piece in definitions.items()}
        self._total = sum(self._sizes.values())

    def loosen(self, root: dict[str, Any]) -> str | None:
        """Replace the properties that make a schema too large by ones that accept anything; return the problem it had."""
        if self._total + _size(root) <= MAX_SCHEMA_SIZE:
            return None
        problem = None
        frame = {key: value for key, value in root.items() if key != "properties"}
        size, reached = self._grow(0, set(), frame)
        properties = root.get("properties", {})
        if size + 2 * len(properties) > MAX_SCHEMA_SIZE:
            for key in frame.keys() - ANNOTATIONS - {"type", "required"}:
                del root[key]
            for name in list(properties)[MAX_SCHEMA_SIZE // 4 :]:
                del properties[name]
            size, reached, problem = 1, set(), TOO_LARGE
        for name, piece in properties.items():
            more, found = self._grow(size, reached, piece)
            if more + 2 * len(properties) > MAX_SCHEMA_SIZE:
                problem = TOO_LARGE
                properties[name] = {}
            else:
                size, reached = more, found
        return problem

    def _grow(self, size: int, reached: set[str], part: Any) -> tuple[int, set[str]]:
        """Return the size and the definitions reached when this part is added."""
        size += _size(part)
        found = set(reached)
        waiting = list(references_in(part))
        while waiting and size <= MAX_SCHEMA_SIZE:
            name = waiting.pop()
            if name not in found and name in self._sizes:
                found.add(name)
                size += self._sizes[name]
                waiting += self._uses[name]
        return size, found


def _size(schema: Any) -> int:
    return sum(map(size_of, subschemas_of(schema)))
