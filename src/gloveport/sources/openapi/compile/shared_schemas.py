"""Which schemas of a document are shared under which names, and which of them differ between what is sent and received."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import orjson

from gloveport.sources.openapi.compile.document.references import DanglingReference, References
from gloveport.sources.openapi.compile.schemas import HIDDEN_FLAGS, Side, identifier

_REFERENCE = re.compile(rb'"\$ref":"([^"\\]+)"')


def place_of(pointer: str, key: str) -> str:
    """The place of the schema `key` below `pointer`, as references to it are told apart."""
    return f"#{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


def shared_names(pointer: str, schemas: Mapping[str, Any]) -> dict[str, str]:
    """A name for each schema below `pointer`, by its place; the same whatever the order of the document."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    # Those whose own name is legal keep it, whoever else would become the same.
    for key in sorted(schemas, key=lambda key: (identifier(key) != key, key)):
        plain = name = identifier(key)
        while name in taken:
            name = f"{plain}_{next(numbers[plain])}"
        taken.add(name)
        names[place_of(pointer, key)] = name
    return names


def sided(schemas: Mapping[str, Any], references: References) -> dict[Side, frozenset[str]]:
    """Of schemas by their place, the places of those with properties, of their own or further down, for one side only."""
    users: dict[str, list[str]] = {}
    found: dict[Side, set[str]] = {"input": set(), "output": set()}
    for place, schema in schemas.items():
        used, flags = _survey(schema)
        for side, flag in HIDDEN_FLAGS.items():
            if flag in flags:
                found[side].add(place)
        for reference in used:
            try:
                target = references.find(reference).place
            except DanglingReference:
                continue
            users.setdefault(target, []).append(place)
            if target not in schemas:  # in another file, say: taken to differ, and so does who refers to it
                found["input"].add(place)
                found["output"].add(place)
    return {side: frozenset(_spread(marked, users)) for side, marked in found.items()}


def _survey(schema: Any) -> tuple[set[str], set[str]]:
    """The references in a schema, and which flags are set in it; what only looks like one in an example does no harm."""
    # Writing it out and looking at the text is far faster than walking through it.
    text = orjson.dumps(schema)
    used = {reference.decode() for reference in _REFERENCE.findall(text)}
    return used, {flag for flag in HIDDEN_FLAGS.values() if f'"{flag}":true'.encode() in text}


def _spread(marked: set[str], users: Mapping[str, list[str]]) -> set[str]:
    waiting = list(marked)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in marked:
                marked.add(user)
                waiting.append(user)
    return marked
