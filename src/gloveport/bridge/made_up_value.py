"""Make up the result of a write that is held back, from its output schema, and recognise it in later arguments.

The value is the same for the same schema and call. Texts and numbers in it are distinctive where the schema leaves the
choice, so that an argument which contains one is known to depend on a result that does not exist yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

MAX_NODES = 500
MAX_DEPTH = 8
MAX_READ_NODES = 20_000  # of arguments, in which made-up values are looked for
FIRST_NUMBER = 900_000_000_000
NUMBERS_OF_A_CALL = 1000  # at most MAX_NODES are used
FIRST_DAY = datetime(2099, 1, 1, tzinfo=UTC)
NAMESPACE = uuid.UUID("a3f1c0de-0000-4000-8000-676c6f766570")


class MadeUpValues:
    """What a plan has made up so far."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._numbers: set[float] = set()

    def make(self, schema: Mapping[str, Any] | None, call: int) -> tuple[Any, bool]:
        """Return a result for a call of a tool with this output schema, and whether the schema says what is in it.

        A schema may be large: do this in a thread.
        """
        maker = _Maker(schema or {}, call)
        value = maker.make(schema or {}, "result", 0)
        self._texts |= maker.texts
        self._numbers |= maker.numbers
        return value, not maker.is_vague

    def note(self, value: Any) -> None:
        """Register a value that was made up before the run was resumed, so that later arguments are checked for it."""
        for _, part in _leaves(value, ""):
            if isinstance(part, str) and _is_distinctive(part):
                self._texts.add(part)
            elif isinstance(part, int | float) and not isinstance(part, bool) and part >= FIRST_NUMBER:
                self._numbers.add(part)

    def found_in(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the paths of the arguments that contain a made-up value."""
        if not self._texts and not self._numbers:
            return ()
        return tuple(path for path, part in _leaves(args, "") if self._contains(part))

    def _contains(self, part: Any) -> bool:
        if isinstance(part, bool):
            return False
        if isinstance(part, int | float):
            return part in self._numbers
        if not isinstance(part, str):
            return False
        return any(text in part for text in self._texts) or any(f"{number:.0f}" in part for number in self._numbers)


def _is_distinctive(text: str) -> bool:
    return "made-up-" in text or text.startswith(f"{FIRST_DAY.year}-") or _is_own_uuid(text)


def _is_own_uuid(text: str) -> bool:
    try:
        return uuid.UUID(text).version == 5
    except ValueError:
        return False


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the plain values inside a value, each with its path: `labels[0].id`."""
    stack, left = [(path, value)], MAX_READ_NODES
    while stack and left:
        at, part = stack.pop()
        left -= 1
        if isinstance(part, Mapping):
            stack += [(f"{at}.{key}" if at else str(key), each) for key, each in reversed(list(part.items()))]
            stack += [(f"{at}.{key}" if at else str(key), key) for key in part]
        elif isinstance(part, list | tuple):
            stack += [(f"{at}[{index}]", each) for index, each in reversed(list(enumerate(part)))]
        else:
            yield at, part


class _Maker:
    def __init__(self, root: Mapping[str, Any], call: int) -> None:
        self._root = root
        self._call = call
        self._left = MAX_NODES
        self._number = 0
        self.texts: set[str] = set()
        self.numbers: set[float] = set()
        self.is_vague = not root

    def make(self, schema: Any, name: str, depth: int) -> Any:
        """Return a value for a part of the schema. `name` is that of the property, and becomes part of texts."""
        self._left -= 1
        schema = self._resolved(schema)
        for known in ("const", "default"):
            if known in schema:
                return schema[known]
        for several in ("enum", "examples"):
            if isinstance(schema.get(several), list) and schema[several]:
                return schema[several][0]
        if self._left < 0 or depth > MAX_DEPTH:
            return None
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [self.make(schema.get("items", {}), name, depth + 1) for _ in range(1 if schema.get("items") else 0)]
            case "integer" | "number":
                return self._numeric(schema)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return self._text(schema, name)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """Follow references and the first alternative, a few times: both may be circular."""
        found = schema
        for _ in range(MAX_DEPTH):
            if not isinstance(found, Mapping):
                return {}
            reference = found.get("$ref")
            branches = next((found[key] for key in ("anyOf", "oneOf") if found.get(key)), None)
            if isinstance(reference, str) and reference.startswith("#/"):
                found = self._at(reference)
            elif isinstance(branches, list) and not found.get("properties"):
                found = next((one for one in branches if not _is_null(one)), {})
            else:
                return found
        return {}

    def _at(self, reference: str) -> Any:
        found: Any = self._root
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        joined = schema.get("allOf")
        for part in (schema, *(map(self._resolved, joined) if isinstance(joined, list) else ())):
            properties = part.get("properties")
            for key, each in properties.items() if isinstance(properties, Mapping) else ():
                if self._left <= 0:
                    break
                made[str(key)] = self.make(each, str(key), depth + 1)
        self.is_vague |= not made
        return made

    def _numeric(self, schema: Mapping[str, Any]) -> Any:
        self._number += 1
        number = FIRST_NUMBER + self._call * NUMBERS_OF_A_CALL + self._number
        least, most = schema.get("minimum"), schema.get("maximum", schema.get("exclusiveMaximum"))
        if isinstance(most, int | float) and number >= most:
            return least if isinstance(least, int | float) else min(most, 0)
        self.numbers.add(number)
        return number

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        self._number += 1
        match schema.get("format"):
            case "uuid":
                text = str(uuid.uuid5(NAMESPACE, f"{self._call} {self._number}"))
            case "date-time":
                text = (FIRST_DAY + timedelta(seconds=self._call * NUMBERS_OF_A_CALL + self._number)).isoformat()
            case "date":
                return FIRST_DAY.date().isoformat()
            case "email":
                text = f"made-up-{self._call}-{self._number}@example.invalid"
            case "uri" | "url":
                text = f"https://example.invalid/made-up-{self._call}-{self._number}"
            case _:
                text = f"made-up-{self._call}-{name[:40]}"
        self.texts.add(text)
        return text


def _type_of(schema: Mapping[str, Any]) -> str:
    stated = schema.get("type")
    if isinstance(stated, list):
        stated = next((one for one in stated if one != "null"), "null")
    if isinstance(stated, str):
        return stated
    if "properties" in schema or "allOf" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"
