"""Name the shared schemas of a document, and find those that differ between input and output."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import orjson

from gloveport.sources.openapi.compile.document.references import DanglingReference, References
from gloveport.sources.openapi.compile.schemas import HIDDEN_FLAGS, Side
from gloveport.sources.schemas.keywords import definition_name

_REFERENCE = re.compile(rb'"\$ref":"([^"\\]+)"')


def place_of(pointer: str, key: str) -> str:
    """Return the place of the schema `key` below `pointer`, which identifies it."""
    return f"#{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


def shared_names(pointer: str, schemas: Mapping[str, Any]) -> dict[str, str]:
    """Return a name for each schema below `pointer`, by its place. The order of the document does not matter."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    # A schema whose own name is legal keeps it, even if another would get the same name.
    for key in sorted(schemas, key=lambda key: (definition_name(key) != key, key)):
        plain = name = definition_name(key)
        while name in taken:
            name = f"{plain}_{next(numbers[plain])}"
        taken.add(name)
        names[place_of(pointer, key)] = name
    return names


def sided_places(schemas: Mapping[str, Any], references: References) -> dict[Side, frozenset[str]]:
    """Return, for each side, the places of the schemas that hide a property from it, themselves or further down."""
    users: dict[str, list[str]] = {}
    found: dict[Side, set[str]] = {"input": set(), "output": set()}
    for place, schema in schemas.items():
        used, flags = _scan(schema)
        for side, flag in HIDDEN_FLAGS.items():
            if flag in flags:
                found[side].add(place)
        for reference in used:
            try:
                target = references.find(reference).place
            except DanglingReference:
                continue
            users.setdefault(target, []).append(place)
            if target not in schemas:  # for example in another file: treated as different on both sides
                found["input"].add(place)
                found["output"].add(place)
    return {side: frozenset(_with_users(marked, users)) for side, marked in found.items()}


def _scan(schema: Any) -> tuple[set[str], set[str]]:
    """Return the references in a schema and the flags set in it. A lookalike in an example does no harm."""
    # Searching the serialised text is far faster than walking through the schema.
    text = orjson.dumps(schema)
    used = {reference.decode() for reference in _REFERENCE.findall(text)}
    return used, {flag for flag in HIDDEN_FLAGS.values() if f'"{flag}":true'.encode() in text}


def _with_users(marked: set[str], users: Mapping[str, list[str]]) -> set[str]:
    waiting = list(marked)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in marked:
                marked.add(user)
                waiting.append(user)
    return marked
