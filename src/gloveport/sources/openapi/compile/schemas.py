"""Normalise schemas of a definition to valid JSON Schema 2020-12, with shared parts as `#/$defs/NAME`.

OpenAPI 3.1 uses JSON Schema already; 3.0, Swagger 2.0 and discovery documents have dialects of their own. An invalid
keyword is left out on its own, so that one bad schema affects nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from gloveport.schema_cost import REFERENCE_PREFIX
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode, References
from gloveport.sources.schemas.keywords import COMMON_RULES, Schema, SchemaWalk, definition_name
from gloveport.sources.texts import clean

Side = Literal["input", "output"]
Warn = Callable[[str, str], None]

MAX_DESCRIPTION_CHARS = SchemaWalk.max_description_chars
MAX_COMBINED_PARTS = 64
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
        self._normalised: dict[tuple[str, Side], tuple[Any, bool]] = {}
        self._hidden: dict[tuple[str, str, Side], bool] = {}
        self.loosened = False
        """Whether a schema was loosened since this was last set to False."""

    def normalise(self, node: Any, side: Side, file: str, place: str) -> Any:
        """Return the normalised schema: an object or a boolean; {} when it can't be used."""
        return OpenApiSchemaWalk(self, side, file, place).schema(node)

    def shared(self, found: DocumentNode, side: Side) -> Any:
        """Return the normalised schema of a node. It is computed once, so callers must not change it."""
        key = (found.place, side)
        if key not in self._normalised:
            before, self.loosened = self.loosened, False
            made = self.normalise(found.value, side, found.file, found.place)
            self._normalised[key] = made, self.loosened
            self.loosened = self.loosened or before
        made, loosened = self._normalised[key]
        self.loosened = self.loosened or loosened
        return made

    def defs(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield the shared schemas that were referred to, and those that they refer to in turn; and which are loosened."""
        while self._referenced:
            name, found, side = self._referenced.pop()
            self.loosened = False
            made = self.normalise(found.value, side, found.file, found.place)
            yield name, made, self.loosened

    def find(self, reference: str, file: str) -> DocumentNode:
        """Return the node that a reference points to."""
        return self._references.find(reference, file)

    def follow(self, value: Any, file: str, pointer: str = "") -> DocumentNode:
        """Return the value as a node, or the node that it refers to."""
        return self._references.follow(value, file, pointer)

    def is_hidden(self, part: Schema, side: Side, file: str) -> bool:
        """Return True for a property that one side does not see: by itself, or by what it refers to or is combined from."""
        flag = HIDDEN_FLAGS[side]
        if part.get(flag) is True:
            return True
        reference = part.get("$ref")
        if isinstance(reference, str):
            key = (reference, file, side)
            if key not in self._hidden:
                self._hidden[key] = any(one.value.get(flag) is True for one in self._combined(part, file))
            return self._hidden[key]
        return "allOf" in part and any(one.value.get(flag) is True for one in self._combined(part, file))

    def hides(self, node: Schema, name: str, side: Side, file: str) -> bool:
        """Return True when a schema, or what it is combined from, hides this property from a side."""
        for one in self._combined(node, file):
            parts = one.value.get("properties")
            part = parts.get(name) if isinstance(parts, dict) else None
            if isinstance(part, dict) and self.is_hidden(part, side, one.file):
                return True
        return False

    def _combined(self, node: Schema, file: str) -> Iterator[DocumentNode]:
        """Yield the schema with the parts of its `allOf`, references resolved, as far as they can be."""
        waiting = [DocumentNode(node, file, "")]
        for _ in range(MAX_COMBINED_PARTS):
            if not waiting:
                return
            try:
                found = self._references.follow(*waiting.pop())
            except DanglingReference:
                continue
            if isinstance(found.value, dict):
                yield found
                below = found.value.get("allOf")
                waiting += [DocumentNode(one, found.file, "") for one in below] if isinstance(below, list) else ()

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
            plain = self._shared.get(place) or definition_name(
                found.pointer.rpartition("/")[2] or found.file.rpartition("/")[2]
            )
            name = f"{plain}{side.capitalize()}" if differs else plain
            if name in self._taken and name != self._shared.get(place):
                name = f"{name}_{hashlib.sha256(f'{place} {side}'.encode()).hexdigest()[:8]}"
            self._taken.add(name)
            self._names[key] = name
            self._referenced.append(ReferencedSchema(name, found, side))
        return name


class OpenApiSchemaWalk(SchemaWalk):
    """Rewrites one schema for one side. References are relative to `file`; `place` is for messages."""

    __slots__ = ("combined", "file", "place", "schemas", "side")

    def __init__(self, schemas: SchemaRegistry, side: Side, file: str, place: str) -> None:
        self.schemas = schemas
        self.side: Side = side
        self.file = file
        self.place = place
        self.combined: list[Schema] = []
        """The schemas whose `allOf` is being rewritten, the innermost last."""

    def loosen(self, problem: str) -> None:
        self.schemas.loosened = True
        self.schemas.warn(self.place, problem)

    def unknown(self, problem: str) -> Schema:
        """Return a schema that accepts anything and says why: a reader must not take it for what the document states."""
        return super().unknown(problem) | {"description": clean(f"Incomplete: {problem}", MAX_DESCRIPTION_CHARS)}

    def schema(self, node: Any, depth: int = 0) -> Any:
        out = super().schema(node, depth)
        if type(node) is dict and (node.get("nullable") is True or node.get("x-nullable") is True):
            return _nullable(out)
        return out

    def resolve(self, reference: str) -> Schema:
        try:
            found = self.schemas.find(reference, self.file)
        except DanglingReference as error:
            return self.unknown(f"the reference {reference!a} can't be resolved: {error}")
        if not isinstance(found.value, (dict, bool)):
            return self.unknown(f"the reference {reference!a} does not point to a schema")
        return {"$ref": f"{REFERENCE_PREFIX}{self.schemas.name_of(found, self.side)}"}

    def _kind(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if value == "file":
            out |= {"type": "string", "format": "binary"}
        else:
            super()._kind(out, key, value, node, depth)

    def _alternatives(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        # Without discriminators and invalid parts, alternatives may overlap: more than one may match.
        self._several(out, "oneOf" if "anyOf" in node else "anyOf", value, node, depth)

    def _all_of(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        self.combined.append(node)
        self._several(out, key, value, node, depth)
        self.combined.pop()

    def _properties(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            self._named(out, key, {name: part for name, part in value.items() if not self._is_hidden(part)}, node, depth)

    def _required(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list):
            value = [name for name in value if not (isinstance(name, str) and self._hides(node, name))]
        super()._required(out, key, value, node, depth)

    def _hides(self, node: Schema, name: str) -> bool:
        """Return True when the schema, or one that it is combined with by an `allOf`, hides this property from the side."""
        parts = node.get("properties")
        if isinstance(parts, dict) and name in parts:
            return self._is_hidden(parts[name])
        around = [node, *self.combined] if "allOf" in node else self.combined
        return any(self.schemas.hides(one, name, self.side, self.file) for one in around)

    def _is_hidden(self, part: Any) -> bool:
        if type(part) is not dict:
            return False
        # A document has a hundred thousand properties, and most are neither.
        if "$ref" in part or "allOf" in part:
            return self.schemas.is_hidden(part, self.side, self.file)
        return part.get(HIDDEN_FLAGS[self.side]) is True


OpenApiSchemaWalk.rules = {
    **COMMON_RULES,
    "type": OpenApiSchemaWalk._kind,
    "allOf": OpenApiSchemaWalk._all_of,
    "oneOf": OpenApiSchemaWalk._alternatives,
    "properties": OpenApiSchemaWalk._properties,
    "required": OpenApiSchemaWalk._required,
}


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
