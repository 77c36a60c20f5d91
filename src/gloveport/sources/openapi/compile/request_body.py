"""Compile a request body: the media types that can be sent, and whether its properties become arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from gloveport.sources.openapi.compile.document.document import Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.media_types import is_binary, is_json_patch, kind_of, offered_contents, sent_as
from gloveport.sources.openapi.compile.schemas import MAX_DESCRIPTION_CHARS, SchemaRegistry
from gloveport.sources.openapi.frames import MAX_FIT_NAMES
from gloveport.sources.openapi.operation import FieldEncoding, MediaContent
from gloveport.sources.schemas.keywords import JSON_TYPES, Schema
from gloveport.sources.texts import clean

MAX_CONTENTS = 20
MAX_ALL_OF_PARTS = 64
BINARY_SCHEMA: Schema = {"type": "string", "format": "binary"}
FILE_SCHEMA: Schema = {
    "anyOf": [
        BINARY_SCHEMA,
        {
            "type": "object",
            "properties": {"data": BINARY_SCHEMA, "filename": {"type": "string"}, "content_type": {"type": "string"}},
            "required": ["data"],
            "additionalProperties": False,
        },
    ]
}
# Keywords that add no constraint to an object beyond its properties, so that these can become arguments.
_PLAIN = frozenset(
    {"type", "properties", "required", "additionalProperties", "allOf", "description", "title", "example", "examples"}
    | {"xml", "externalDocs", "discriminator", "deprecated", "default", "nullable", "$schema", "$id", "id", "$defs"}
    | {"readOnly", "writeOnly", "minProperties", "$comment"}
)
_OBJECTS = ("object", ["object", "null"], ["object"])


class SpreadProperties(NamedTuple):
    """An object whose properties can become arguments. `rest` is the schema of further properties, False for none."""

    properties: dict[str, Any]
    required: tuple[str, ...]
    rest: Any
    choices: tuple[Schema, ...]


class CompiledBody(NamedTuple):
    """A request body: its media types, its schema, and its properties when they can become arguments."""

    contents: tuple[MediaContent, ...]
    required: bool
    schema: Schema
    spread: SpreadProperties | None


def compile_body(body: DocumentNode, schemas: SchemaRegistry, place: str, warn: Warn) -> CompiledBody | None:
    """Return the body that a `requestBody` describes, or None when it has no media type."""
    content = body.value.get("content") if isinstance(body.value, dict) else None
    entries = list(offered_contents(content).items()) if isinstance(content, dict) else []
    if not entries:
        warn(place, "its body is left out: the definition names no media type")
    if len(entries) > MAX_CONTENTS:
        warn(place, f"only {MAX_CONTENTS} of the media types of its body can be sent")
        entries = entries[:MAX_CONTENTS]
    if not entries or (body.value.get("required") is not True and all(_is_empty(entry) for _, entry in entries)):
        return None
    contents = [_content(name, entry, body.file, schemas) for name, entry in entries]
    if len(contents) > 1:
        contents = [
            _with_fit(content, DocumentNode(entry.get("schema"), body.file, ""), schemas)
            for content, (_, entry) in zip(contents, entries, strict=True)
        ]
    alternatives: list[Any] = []
    for one, (_, entry) in zip(contents, entries, strict=True):
        schema = _body_schema(one, entry.get("schema", {}), body.file, schemas, place)
        if schema not in alternatives:
            alternatives.append(schema)
    schema: Any = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    schema = dict(schema) if isinstance(schema, dict) else {}
    if text := clean(body.value.get("description"), MAX_DESCRIPTION_CHARS):
        schema.setdefault("description", text)
    objects = all(one.kind in ("json", "form", "multipart") for one in contents)
    first = entries[0][1].get("schema")
    same = objects and all(entry.get("schema") == first for _, entry in entries)
    spread = _spread_properties(DocumentNode(first, body.file, ""), schemas, place) if same else None
    if spread is not None:
        _mark_files(spread.properties, contents)
    return CompiledBody(tuple(contents), body.value.get("required") is True, schema, spread)


def _is_empty(entry: dict[str, Any]) -> bool:
    """Return True for an object without properties, which generators emit for operations that take no body."""
    schema = entry.get("schema")
    return isinstance(schema, dict) and schema.get("properties") == {} and not schema.get("additionalProperties")


def _content(name: str, entry: dict[str, Any], file: str, schemas: SchemaRegistry) -> MediaContent:
    schema = entry.get("schema")
    kind = kind_of(name, schema)
    if kind not in ("form", "multipart"):
        return MediaContent(sent_as(name) if kind != "bytes" else _bytes_type(name), kind)
    encodings: dict[str, FieldEncoding] = {}
    declared = entry.get("encoding")
    for key, value in declared.items() if isinstance(declared, dict) else ():
        if isinstance(value, dict):
            encodings[key] = _encoding(value)
    binary = tuple(_file_properties(DocumentNode(schema, file, ""), schemas, encodings)) if kind == "multipart" else ()
    return MediaContent(sent_as(name) if kind == "form" else name, kind, encodings, binary)


def _with_fit(content: MediaContent, found: DocumentNode, schemas: SchemaRegistry) -> MediaContent:
    """Return the content with what tells whether a body fits it."""
    if is_json_patch(content.media_type):
        return msgspec.structs.replace(content, takes=("array",))
    if content.kind in ("bytes", "text"):
        return msgspec.structs.replace(content, takes=("string",))
    takes: set[str] = set()
    properties: dict[str, None] = {}
    required: dict[str, None] = {}
    for part in all_of_parts(found, schemas):
        kinds = part.value.get("type", "object" if isinstance(part.value.get("properties"), dict) else None)
        takes |= {"number" if kind == "integer" else str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds])}
        own, needed = part.value.get("properties"), part.value.get("required")
        properties |= dict.fromkeys(own if isinstance(own, dict) else ())
        required |= dict.fromkeys(name for name in (needed if isinstance(needed, list) else ()) if isinstance(name, str))
    takes = takes & JSON_TYPES if "None" not in takes else set()
    known, needed = tuple(properties), tuple(name for name in required if name in properties)
    if max(len(known), len(needed)) > MAX_FIT_NAMES:
        known = needed = ()
    return msgspec.structs.replace(content, takes=tuple(sorted(takes)), properties=known, required=needed)


def _bytes_type(name: str) -> str:
    return name if "*" not in name and "/" in name else "application/octet-stream"


def _encoding(value: dict[str, Any]) -> FieldEncoding:
    content_type, style, explode = value.get("contentType"), value.get("style"), value.get("explode")
    return FieldEncoding(
        content_type if isinstance(content_type, str) else None,
        style if isinstance(style, str) else None,
        explode if isinstance(explode, bool) else None,
        value.get("allowReserved") is True,
    )


def _file_properties(found: DocumentNode, schemas: SchemaRegistry, encodings: dict[str, FieldEncoding]) -> list[str]:
    """Return the properties of a multipart body that are files."""
    names: list[str] = []
    for part, file, _ in all_of_parts(found, schemas):
        properties = part.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            try:
                node = schemas.follow(schema, file).value
                if isinstance(node, dict) and node.get("type") == "array":
                    node = schemas.follow(node.get("items"), file).value
            except DanglingReference:
                continue
            typed = encodings[name].content_type if name in encodings else None
            untyped = isinstance(node, dict) and not {"type", "properties", "$ref", "allOf", "anyOf", "oneOf"} & node.keys()
            if is_binary(node) or (untyped and typed is not None and kind_of(typed) == "bytes"):
                names.append(name)
    return list(dict.fromkeys(names))


def all_of_parts(found: DocumentNode, schemas: SchemaRegistry) -> list[DocumentNode]:
    """Return a schema and the parts of its `allOf`, with references resolved; [] when one can't be resolved."""
    out: list[DocumentNode] = []
    seen: set[str] = set()
    waiting = [found]
    while waiting:
        try:
            part = schemas.follow(*waiting.pop())
        except DanglingReference:
            return []
        if part.pointer and part.place in seen:
            continue
        seen.add(part.place)
        out.append(part)
        if not isinstance(part.value, dict) or len(out) > MAX_ALL_OF_PARTS:
            return []
        below = part.value.get("allOf")
        waiting += [DocumentNode(one, part.file, "") for one in reversed(below if isinstance(below, list) else ())]
    return out


def _body_schema(content: MediaContent, schema: Any, file: str, schemas: SchemaRegistry, place: str) -> Any:
    if content.kind == "bytes":
        return BINARY_SCHEMA
    if content.kind == "text":
        made = schemas.normalise(schema, "input", file, place) if isinstance(schema, dict) and "$ref" not in schema else {}
        return made if isinstance(made, dict) and made.get("type") == "string" else {"type": "string"}
    made = schemas.normalise(schema, "input", file, place)
    if is_json_patch(content.media_type) and isinstance(made, dict) and made.get("type") == "object":
        return {"type": "array", "items": {"type": "object"}}  # whatever the definition says (RFC 6902)
    if content.binary and isinstance(made, dict):
        spread = _spread_properties(DocumentNode(schema, file, ""), schemas, place)
        if spread is not None:
            _mark_files(spread.properties, [content])
            rest = {"additionalProperties": spread.rest} if spread.rest is not None else {}
            return {"type": "object", "properties": spread.properties, "required": list(spread.required), **rest}
    return made


def _mark_files(properties: dict[str, Any], contents: list[MediaContent]) -> None:
    for name in {name for content in contents for name in content.binary} & properties.keys():
        schema = properties[name]
        notes = {key: schema[key] for key in ("description", "deprecated") if key in schema}
        many = isinstance(schema, dict) and schema.get("type") == "array"
        properties[name] = ({"type": "array", "items": FILE_SCHEMA} if many else FILE_SCHEMA) | notes


def _spread_properties(found: DocumentNode, schemas: SchemaRegistry, place: str) -> SpreadProperties | None:
    """Return the properties of an object schema and of its `allOf`; None when it has other constraints as well."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    choices: list[Schema] = []
    rest: Any = None
    for node, file, pointer in all_of_parts(found, schemas):
        chosen = _required_choices(node)
        plain = _PLAIN | {"anyOf", "oneOf"} if chosen else _PLAIN
        if any(key not in plain and not key.startswith("x-") for key in node) or node.get("type", "object") not in _OBJECTS:
            return None
        own = DocumentNode({key: node[key] for key in ("properties", "required") if key in node}, file, f"{pointer}?")
        made = schemas.shared(own, "input") if pointer else schemas.normalise(own.value, "input", file, place)
        properties |= made.get("properties", {})
        required += made.get("required", ())
        choices += chosen
        further = node.get("additionalProperties")
        if rest is None and isinstance(further, (dict, bool)):
            rest = schemas.normalise(further, "input", file, place)
    if not properties:
        return None
    names = tuple(name for name in dict.fromkeys(required) if name in properties)
    return SpreadProperties(properties, names, rest, tuple(choices))


def _required_choices(node: dict[str, Any]) -> list[Schema]:
    """Return `anyOf` and `oneOf` if they only state which properties are required together, else []."""
    found: list[Schema] = []
    for key in ("anyOf", "oneOf"):
        parts = node.get(key)
        if parts is None:
            continue
        plain = isinstance(parts, list) and parts and all(_only_requires(part) for part in parts)
        if not plain:
            return []
        found.append({key: [{"required": part["required"]} for part in parts]})
    return found


def _only_requires(part: Any) -> bool:
    names = part.get("required") if isinstance(part, dict) and part.keys() <= {"required", "type"} else None
    return isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names)
