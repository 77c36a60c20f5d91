"""The body of an operation: which media types can be sent, and whether its properties are arguments of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.media_types import is_binary, kind_of, offered, sent_as
from gloveport.sources.openapi.compile.schemas import MAX_DESCRIPTION_CHARS, Schema, SchemaRegistry
from gloveport.sources.openapi.operation import FieldEncoding, MediaContent
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
# What says no more about an object than its properties do, so that these can stand among other arguments.
_PLAIN = frozenset(
    {"type", "properties", "required", "additionalProperties", "allOf", "description", "title", "example", "examples"}
    | {"xml", "externalDocs", "discriminator", "deprecated", "default", "nullable", "$schema", "$id", "id", "$defs"}
    | {"readOnly", "writeOnly", "minProperties", "$comment"}
)
_OBJECTS = ("object", ["object", "null"], ["object"])


class SpreadProperties(NamedTuple):
    """An object whose properties can be arguments of their own. `rest`: what further properties must be, False for none."""

    properties: dict[str, Any]
    required: tuple[str, ...]
    rest: Any
    choices: tuple[Schema, ...]


class CompiledBody(NamedTuple):
    """A request body: its media types, and its schema whole and, where it can be, spread."""

    contents: tuple[MediaContent, ...]
    required: bool
    schema: Schema
    spread: SpreadProperties | None


def payload(body: DocumentNode, schemas: SchemaRegistry, place: str) -> CompiledBody | None:
    """The body that a `requestBody` describes, or None when it has no media type."""
    content = body.value.get("content") if isinstance(body.value, dict) else None
    entries = list(offered(content).items())[:MAX_CONTENTS] if isinstance(content, dict) else []
    if not entries or (body.value.get("required") is not True and all(_is_empty(entry) for _, entry in entries)):
        return None
    made = [_content(name, entry, body.file, schemas) for name, entry in entries]
    whole: list[Any] = []
    for one, (_, entry) in zip(made, entries, strict=True):
        schema = _whole(one, entry.get("schema", {}), body.file, schemas, place)
        if schema not in whole:
            whole.append(schema)
    schema: Any = whole[0] if len(whole) == 1 else {"anyOf": whole}
    schema = dict(schema) if isinstance(schema, dict) else {}
    if text := clean(body.value.get("description"), MAX_DESCRIPTION_CHARS):
        schema.setdefault("description", text)
    objects = all(one.kind in ("json", "form", "multipart") for one in made)
    first = entries[0][1].get("schema")
    same = objects and all(entry.get("schema") == first for _, entry in entries)
    spread = _spread(DocumentNode(first, body.file, ""), schemas, place) if same else None
    if spread is not None:
        _mark_files(spread.properties, made)
    return CompiledBody(tuple(made), body.value.get("required") is True, schema, spread)


def _is_empty(entry: dict[str, Any]) -> bool:
    """True for an object without properties, as generators give to operations that take no body."""
    schema = entry.get("schema")
    return isinstance(schema, dict) and schema.get("properties") == {} and not schema.get("additionalProperties")


def _content(name: str, entry: dict[str, Any], file: str, schemas: SchemaRegistry) -> MediaContent:
    schema = entry.get("schema")
    kind = kind_of(name, schema)
    if kind not in ("form", "multipart"):
        return MediaContent(sent_as(name) if kind != "bytes" else _bytes_type(name), kind)
    encodings: dict[str, FieldEncoding] = {}
    said = entry.get("encoding")
    for key, value in said.items() if isinstance(said, dict) else ():
        if isinstance(value, dict):
            encodings[key] = _encoding(value)
    binary = tuple(_files(DocumentNode(schema, file, ""), schemas, encodings)) if kind == "multipart" else ()
    return MediaContent(sent_as(name) if kind == "form" else name, kind, encodings, binary)


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


def _files(found: DocumentNode, schemas: SchemaRegistry, encodings: dict[str, FieldEncoding]) -> list[str]:
    """The properties of a multipart body that are files."""
    names: list[str] = []
    for part, file, _ in parts(found, schemas):
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


def parts(found: DocumentNode, schemas: SchemaRegistry) -> list[DocumentNode]:
    """A schema and the parts of its `allOf`, references followed; [] when one of them can't be had."""
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


def _whole(content: MediaContent, schema: Any, file: str, schemas: SchemaRegistry, place: str) -> Any:
    if content.kind == "bytes":
        return BINARY_SCHEMA
    if content.kind == "text":
        made = schemas.normalise(schema, "input", file, place) if isinstance(schema, dict) and "$ref" not in schema else {}
        return made if isinstance(made, dict) and made.get("type") == "string" else {"type": "string"}
    made = schemas.normalise(schema, "input", file, place)
    if content.binary and isinstance(made, dict):
        spread = _spread(DocumentNode(schema, file, ""), schemas, place)
        if spread is not None:
            _mark_files(spread.properties, [content])
            rest = {"additionalProperties": spread.rest} if spread.rest is not None else {}
            return {"type": "object", "properties": spread.properties, "required": list(spread.required), **rest}
    return made


def _mark_files(properties: dict[str, Any], contents: list[MediaContent]) -> None:
    for name in {name for content in contents for name in content.binary} & properties.keys():
        schema = properties[name]
        said = {key: schema[key] for key in ("description", "deprecated") if key in schema}
        many = isinstance(schema, dict) and schema.get("type") == "array"
        properties[name] = ({"type": "array", "items": FILE_SCHEMA} if many else FILE_SCHEMA) | said


def _spread(found: DocumentNode, schemas: SchemaRegistry, place: str) -> SpreadProperties | None:
    """The properties of an object schema, those of its `allOf` included; None when there is more to it than properties."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    choices: list[Schema] = []
    rest: Any = None
    for node, file, pointer in parts(found, schemas):
        chosen = _choices(node)
        plain = _PLAIN | {"anyOf", "oneOf"} if chosen else _PLAIN
        if any(key not in plain and not key.startswith("x-") for key in node) or node.get("type", "object") not in _OBJECTS:
            return None
        own = DocumentNode({key: node[key] for key in ("properties", "required") if key in node}, file, f"{pointer}?")
        made = schemas.shared(own, "input") if pointer else schemas.normalise(own.value, "input", file, place)
        properties |= made.get("properties", {})
        required += made.get("required", ())
        choices += chosen
        said = node.get("additionalProperties")
        if rest is None and isinstance(said, (dict, bool)):
            rest = schemas.normalise(said, "input", file, place)
    if not properties:
        return None
    names = tuple(name for name in dict.fromkeys(required) if name in properties)
    return SpreadProperties(properties, names, rest, tuple(choices))


def _choices(node: dict[str, Any]) -> list[Schema]:
    """`anyOf` and `oneOf` that only say which properties go together; [] when there are none, or they say more."""
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
