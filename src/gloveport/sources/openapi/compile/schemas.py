"""Normalise schemas of a definition to valid JSON Schema 2020-12, with shared parts as `#/$defs/NAME`.

OpenAPI 3.1 uses JSON Schema already; 3.0, Swagger 2.0 and discovery documents have dialects of their own. An invalid
keyword is left out on its own, so that one bad schema affects nothing else.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jsonschema_rs
import msgspec

from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode, References
from gloveport.sources.texts import clean

Side = Literal["input", "output"]
Warn = Callable[[str, str], None]
Schema = dict[str, Any]

MAX_SCHEMA_DEPTH = 64
MAX_DESCRIPTION_CHARS = 600
JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
HIDDEN_FLAGS: Mapping[Side, str] = {"input": "readOnly", "output": "writeOnly"}


class ReferencedSchema(NamedTuple):
    """A shared schema that another schema refers to."""

    name: str
    found: DocumentNode
    side: Side


class SchemaRegistry:
    """Normalises schemas, and keeps track of the shared schemas that they refer to."""

    def __init__(self, references: References, shared: Mapping[str, str], sided: Mapping[Side, frozenset[str]], warn: Warn):
        """`shared` maps places of shared schemas to names. `sided` has the places that differ between input and output."""
        self._references = references
        self._shared = shared
        self._sided = sided
        self._warn = warn
        self._names: dict[tuple[str, Side | None], str] = {}
        self._taken: set[str] = set(shared.values())
        self._referenced: list[ReferencedSchema] = []
        self._patterns: dict[str, bool] = {}
        self._normalised: dict[tuple[str, Side], Any] = {}

    def normalise(self, node: Any, side: Side, file: str, place: str) -> Any:
        """Return the normalised schema: an object or a boolean; {} when it can't be used."""
        return SchemaWalk(self, side, file, place).schema(node, 0)

    def shared(self, found: DocumentNode, side: Side) -> Any:
        """Return the normalised schema of a node. It is computed once, so callers must not change it."""
        key = (found.place, side)
        if key not in self._normalised:
            self._normalised[key] = self.normalise(found.value, side, found.file, found.place)
        return self._normalised[key]

    def defs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the shared schemas that were referred to, and those that they refer to in turn."""
        while self._referenced:
            name, found, side = self._referenced.pop()
            yield name, msgspec.json.encode(self.normalise(found.value, side, found.file, found.place))

    def find(self, reference: str, file: str) -> DocumentNode:
        """Return the node that a reference points to."""
        return self._references.find(reference, file)

    def follow(self, value: Any, file: str, pointer: str = "") -> DocumentNode:
        """Return the value as a node, or the node that it refers to."""
        return self._references.follow(value, file, pointer)

    def warn(self, place: str, problem: str) -> None:
        """Report a part that is left out."""
        self._warn(place, problem)

    def name_of(self, found: DocumentNode, side: Side) -> str:
        """Return the name of a shared schema, and note that it is referred to."""
        place = found.place
        differs = place not in self._shared or place in self._sided[side]
        key = (place, side if differs else None)
        name = self._names.get(key)
        if name is None:
            plain = self._shared.get(place) or identifier(found.pointer.rpartition("/")[2] or found.file.rpartition("/")[2])
            name = f"{plain}{side.capitalize()}" if differs else plain
            if name in self._taken and name != self._shared.get(place):
                name = f"{name}_{hashlib.sha256(f'{place} {side}'.encode()).hexdigest()[:8]}"
            self._taken.add(name)
            self._names[key] = name
            self._referenced.append(ReferencedSchema(name, found, side))
        return name

    def is_valid_pattern(self, pattern: Any) -> bool:
        """Return True for a pattern that the validator can compile."""
        if not isinstance(pattern, str):
            return False
        if pattern not in self._patterns:
            try:
                jsonschema_rs.Draft202012Validator({"pattern": pattern})
                self._patterns[pattern] = True
            except (ValueError, jsonschema_rs.ValidationError):
                self._patterns[pattern] = False
        return self._patterns[pattern]


class SchemaWalk:
    """Normalises one schema for one side. References are relative to `file`; `place` is for messages."""

    __slots__ = ("file", "place", "schemas", "side")

    def __init__(self, schemas: SchemaRegistry, side: Side, file: str, place: str) -> None:
        self.schemas = schemas
        self.side: Side = side
        self.file = file
        self.place = place

    def schema(self, node: Any, depth: int) -> Any:
        """Return the node as JSON Schema 2020-12."""
        if type(node) is not dict:
            return node if isinstance(node, bool) else self._unknown("a schema is not an object")
        if depth > MAX_SCHEMA_DEPTH:
            return self._unknown(f"a schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        reference = node.get("$ref")
        out = self._reference(reference, node, depth) if isinstance(reference, str) else self._keywords(node, depth)
        return _nullable(out) if node.get("nullable") is True or node.get("x-nullable") is True else out

    def _unknown(self, problem: str) -> Schema:
        self.schemas.warn(self.place, problem)
        return {}

    def _reference(self, reference: str, node: Schema, depth: int) -> Schema:
        try:
            found = self.schemas.find(reference, self.file)
        except DanglingReference as error:
            return self._unknown(f"the reference {reference!a} can't be resolved: {error}")
        if not isinstance(found.value, (dict, bool)):
            return self._unknown(f"the reference {reference!a} does not point to a schema")
        out = {"$ref": f"#/$defs/{self.schemas.name_of(found, self.side)}"}
        if len(node) > 1:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            out |= self._keywords(beside, depth + 1)
        return out

    def _keywords(self, node: Schema, depth: int) -> Schema:
        out: Schema = {}
        for key, value in node.items():
            rule = KEYWORD_RULES.get(key)
            if rule is not None:
                rule(self, out, key, value, node, depth + 1)
        return out

    # Each rule below copies one keyword to `out`, or leaves it out.

    def _kind(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if value == "file":
            out |= {"type": "string", "format": "binary"}
        elif isinstance(value, list):
            kinds = [kind for kind in dict.fromkeys(v for v in value if isinstance(v, str)) if kind in JSON_TYPES]
            if kinds:
                out["type"] = kinds if len(kinds) > 1 else kinds[0]
        elif isinstance(value, str) and value in JSON_TYPES:
            out["type"] = value

    def _keep(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        out[key] = value

    def _text(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, str) and value:
            out[key] = value

    def _description(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if text := clean(value, MAX_DESCRIPTION_CHARS):
            out[key] = text

    def _flag(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if value is True:
            out[key] = True

    def _number(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if _is_finite(value) and (key != "multipleOf" or value > 0) and node.get(EXCLUSIVE_BOUNDS.get(key, "")) is not True:
            out[key] = value

    def _exclusive(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        bound = node.get("minimum" if key == "exclusiveMinimum" else "maximum") if value is True else value
        if _is_finite(bound):
            out[key] = bound

    def _count(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if _is_finite(value) and value >= 0 and value == int(value):
            out[key] = int(value)

    def _pattern(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if self.schemas.is_valid_pattern(value):
            out[key] = value

    def _one(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, (dict, bool)):
            out[key] = self.schema(value, depth)

    def _several(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list) and value:
            made = [self.schema(part, depth) for part in value]
            if key == "oneOf" and "anyOf" not in node:
                # Without discriminators and invalid parts, alternatives may overlap: more than one may match.
                key = "anyOf"
            out[key] = made

    def _items(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list):
            self._several(out, "prefixItems", value, node, depth)
        else:
            self._one(out, key, value, node, depth)

    def _named(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            out[key] = {name: self.schema(part, depth) for name, part in value.items()}

    def _matched(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            self._named(
                out, key, {name: part for name, part in value.items() if self.schemas.is_valid_pattern(name)}, node, depth
            )

    def _properties(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            hidden = HIDDEN_FLAGS[self.side]
            out[key] = {
                name: self.schema(part, depth)
                for name, part in value.items()
                if not (type(part) is dict and part.get(hidden) is True)
            }

    def _required(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list):
            names = dict.fromkeys(name for name in value if isinstance(name, str))
            parts = node.get("properties")
            if isinstance(parts, dict):
                hidden = HIDDEN_FLAGS[self.side]
                names = [n for n in names if not (isinstance(p := parts.get(n), dict) and p.get(hidden) is True)]
            if names:
                out[key] = list(names)

    def _enum(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list) and value:
            out[key] = value

    def _needs(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict) and all(
            isinstance(v, list) and all(isinstance(n, str) for n in v) for v in value.values()
        ):
            out[key] = value


Rule = Callable[[SchemaWalk, Schema, str, Any, Schema, int], None]
EXCLUSIVE_BOUNDS = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}


def _rules(rule: Rule, *keys: str) -> Iterable[tuple[str, Rule]]:
    return ((key, rule) for key in keys)


KEYWORD_RULES: Mapping[str, Rule] = dict(
    (
        *_rules(SchemaWalk._kind, "type"),
        *_rules(SchemaWalk._keep, "const", "default"),
        *_rules(SchemaWalk._text, "format", "contentEncoding", "contentMediaType"),
        *_rules(SchemaWalk._description, "description"),
        *_rules(SchemaWalk._flag, "deprecated", "uniqueItems"),
        *_rules(SchemaWalk._number, "minimum", "maximum", "multipleOf"),
        *_rules(SchemaWalk._exclusive, "exclusiveMinimum", "exclusiveMaximum"),
        *_rules(SchemaWalk._count, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *_rules(SchemaWalk._count, "minContains", "maxContains"),
        *_rules(SchemaWalk._pattern, "pattern"),
        *_rules(SchemaWalk._one, "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *_rules(SchemaWalk._one, "unevaluatedProperties", "unevaluatedItems"),
        *_rules(SchemaWalk._several, "allOf", "anyOf", "oneOf", "prefixItems"),
        *_rules(SchemaWalk._items, "items"),
        *_rules(SchemaWalk._named, "dependentSchemas"),
        *_rules(SchemaWalk._matched, "patternProperties"),
        *_rules(SchemaWalk._properties, "properties"),
        *_rules(SchemaWalk._required, "required"),
        *_rules(SchemaWalk._enum, "enum"),
        *_rules(SchemaWalk._needs, "dependentRequired"),
    )
)


def identifier(text: str) -> str:
    """Return the text as the name of a shared schema: letters, digits and `_`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text.replace("~1", "_").replace("~0", "_")).strip("_") or "Schema"
    return f"_{name}" if name[0].isdigit() else name


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _nullable(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kind, values = schema.get("type"), schema.get("enum")
    if "$ref" in schema or "allOf" in schema or "anyOf" in schema:
        notes = {key: schema[key] for key in ("description", "default", "deprecated") if key in schema}
        rest = {key: value for key, value in schema.items() if key not in notes}
        return {"anyOf": [rest, {"type": "null"}], **notes}
    out = dict(schema)
    if isinstance(kind, str) and kind != "null":
        out["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        out["type"] = [*kind, "null"]
    if values and None not in values:
        out["enum"] = [*values, None]
    return out
