"""Generate valid arguments for a tool from its input schema and a seed, and invalid ones from those."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import jsonschema_rs
import msgspec

ATTEMPTS = 60
DEEPEST = 6
# Texts that careless encoding breaks.
AWKWARD = [
    "a",
    "two words",
    "slash/slash",
    "q?x=1&y=2#z",
    "100%",
    "%2F",
    "semi;colon,comma",
    "plus+plus",
    "é✓𝄞",
    'quo"te',
    "[b]{r}|a\\c",
    "~:@!$'()*",
]
FORMATS = {
    "date-time": "2024-02-29T12:30:00Z",
    "date": "2024-02-29",
    "time": "12:30:00Z",
    "uri": "https://example.com/a?b=c",
    "url": "https://example.com/a?b=c",
    "email": "ada@example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": base64.b64encode(b"\0\xff?>").decode(),
    "repo.nwo": "ada/engine",
    "ssh-key fingerprint": "SHA256:abc",
    "timestamp": "2024-02-29T12:30:00Z",
    "duration": "P1D",
}
# File names; Prism crashes on an equals sign in one.
FILE = {"content_type": "image/webp", "filename": "a photo.webp"}
# A match for each pattern in GitHub's definition.
PATTERNS = [
    "a",
    "A1",
    "main",
    "0" * 40,
    "0" * 64,
    "1.2.3",
    "ada/engine",
    "https://example.com",
    "12",
    "2024-02",
    "refs/heads/main",
]
PATTERNS += [f"sha256:{'0' * 64}", "ssh-rsa AAAA"]


class Unmade(Exception):
    """No valid value was found."""


class Maker:
    """Generates values for the schemas of one tool."""

    def __init__(self, schema: Mapping[str, Any], random: Random) -> None:
        self._whole = dict(schema)
        self._defs = self._whole.get("$defs", {})
        self._random = random
        self._validator = jsonschema_rs.validator_for(self._whole, validate_formats=False)
        # The schema has `anyOf` where the definition may have `oneOf`, which refuses a value that fits two alternatives.
        self._once = jsonschema_rs.validator_for(_with_one_of(self._whole), validate_formats=False)

    def well_formed(self) -> dict[str, Any]:
        """Return valid arguments. Raises Unmade after too many attempts."""
        fits_twice = None
        for attempt in range(ATTEMPTS):
            made = self._value(self._whole, 0, sparse=attempt > ATTEMPTS // 2)
            if self._once.is_valid(msgspec.to_builtins(made)):
                return made
            if not self.refuses(made):
                fits_twice = made
        if fits_twice is None:
            raise Unmade
        return fits_twice

    def malformed(self, args: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Return variants with one mistake each: an argument missing, one too many, one of another type."""
        yield {**args, "no such argument": 1}
        for name in self._whole.get("required", ()):
            yield {key: value for key, value in args.items() if key != name}
        for name in args:
            yield {**args, name: {"an": ["object", "that", "nobody", "wants"]}}

    def refuses(self, args: Mapping[str, Any]) -> bool:
        """Return whether the schema refuses these arguments."""
        return not self._validator.is_valid(msgspec.to_builtins(args))

    def _value(self, schema: Any, depth: int, *, sparse: bool) -> Any:
        if schema is True or not schema:
            return self._random.choice(["any", 1, True])
        schema = self._flat(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        kind = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else "string")
        if isinstance(kind, list):
            kind = self._random.choice([one for one in kind if one != "null"] or ["null"])
        make = getattr(self, f"_{kind}", None)
        return make(schema, depth, sparse) if make else None

    def _flat(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema with references resolved, parts merged, and one alternative chosen."""
        out = dict(schema)
        for _ in range(20):
            if "$ref" in out:
                name = out.pop("$ref").removeprefix("#/$defs/")
                out = {**self._defs.get(name, {}), **out}
                continue
            key = next((key for key in ("oneOf", "anyOf", "allOf") if key in out), None)
            if key is None:
                break
            parts = out.pop(key)
            for part in parts if key == "allOf" else [self._random.choice(parts)]:
                out = _merged(out, self._flat(part) if isinstance(part, Mapping) else {})
        return out

    def _object(self, schema: Mapping[str, Any], depth: int, sparse: bool) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        chance = 0.0 if sparse or depth > DEEPEST else 0.6 / (1 + depth)
        out = {
            name: self._value(below, depth + 1, sparse=sparse)
            for name, below in schema.get("properties", {}).items()
            if name in required or self._random.random() < chance
        }
        if "data" in out:
            out |= {name: text for name, text in FILE.items() if name in out}
        more = schema.get("additionalProperties")
        if (
            isinstance(more, Mapping)
            and more
            and (len(out) < schema.get("minProperties", 0) or self._random.random() < chance)
        ):
            out["extra"] = self._value(more, depth + 1, sparse=sparse)
        return out

    def _array(self, schema: Mapping[str, Any], depth: int, sparse: bool) -> list[Any]:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        count = least if sparse else self._random.randint(max(least, min(1, most)), most)
        made = [self._value(schema.get("items", {}), depth + 1, sparse=sparse) for _ in range(count)]
        return [item for index, item in enumerate(made) if item not in made[:index]] if schema.get("uniqueItems") else made

    def _integer(self, schema: Mapping[str, Any], _depth: int, _sparse: bool) -> int:
        least = int(schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
        return self._random.randint(least, max(least, int(schema.get("maximum", least + 40))))

    def _number(self, schema: Mapping[str, Any], depth: int, sparse: bool) -> float:
        whole = self._integer(schema, depth, sparse)
        return whole + 0.5 if "maximum" not in schema else float(whole)

    def _string(self, schema: Mapping[str, Any], _depth: int, _sparse: bool) -> Any:
        if schema.get("format") == "binary":
            return self._random.choice([b"\0\xff\r\n--", b"plain"])
        if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        if "pattern" in schema:
            return self._random.choice([text for text in PATTERNS if re.search(schema["pattern"], text)] or PATTERNS)
        text = self._random.choice(AWKWARD)
        least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
        return (text + "x" * max(0, least - len(text)))[:most]

    def _boolean(self, _schema: Mapping[str, Any], _depth: int, _sparse: bool) -> bool:
        return self._random.random() < 0.5


def _with_one_of(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_one_of(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {"oneOf" if key == "anyOf" and "oneOf" not in node else key: _with_one_of(each) for key, each in node.items()}


def _merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    out = {**left, **right}
    if "properties" in left and "properties" in right:
        out["properties"] = {**left["properties"], **right["properties"]}
    if "required" in left and "required" in right:
        out["required"] = [*left["required"], *right["required"]]
    return out
