"""The body of an operation: which media types can be sent, and whether its properties are arguments of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.document.references import Dangling, Found
from gloveport.sources.openapi.compile.media_types import is_binary, kind_of, offered, sent_as
from gloveport.sources.openapi.compile.schemas import MOST_DESCRIPTION, Schema, Schemas
from gloveport.sources.openapi.operation import Content, Encoding
from gloveport.sources.texts import clean

MOST_CONTENTS = 20
MOST_PARTS = 64
BINARY: Schema = {"type": "string", "format": "binary"}
FILE: Schema = {
    "anyOf": [
        BINARY,
        {
            "type": "object",
            "properties": {"data": BINARY, "filename": {"type": "string"}, "content_type": {"type": "string"}},
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


class Spread(NamedTuple):
    """An object whose properties can be arguments of their own. `rest`: what further properties must be, False for none."""

    properties: dict[str, Any]
    required: tuple[str, ...]
    rest: Any
    choices: tuple[Schema, ...]


class Payload(NamedTuple):
    """A request body: its media types, and its schema whole and, where it can be, spread."""

    contents: tuple[Content, ...]
    required: bool
    schema: Schema
    spread: Spread | None


def payload(body: Found, schemas: Schemas, place: str) -> Payload | None:
    """The body that a `requestBody` describes, or None when it has no media type."""
    content = body.value.get("content") if isinstance(body.value, dict) else None
    entries = list(offered(content).items())[:MOST_CONTENTS] if isinstance(content, dict) else []
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
    if text := clean(body.value.get("description"), MOST_DESCRIPTION):
        schema.setdefault("description", text)
    objects = all(one.kind in ("json", "form", "multipart") for one in made)
    first = entries[0][1].get("schema")
    same = objects and all(entry.get("schema") == first for _, entry in entries)
    spread = _spread(Found(first, body.file, ""), schemas, place) if same else None
    if spread is not None:
        _mark_files(spread.properties, made)
    return Payload(tuple(made), body.value.get("required") is True, schema, spread)


def _is_empty(entry: dict[str, Any]) -> bool:
    """True for an object without properties, as generators give to operations that take no body."""
    schema = entry.get("schema")
    return isinstance(schema, dict) and schema.get("properties") == {} and not schema.get("additionalProperties")


def _content(name: str, entry: dict[str, Any], file: str, schemas: Schemas) -> Content:
    schema = entry.get("schema")
    kind = kind_of(name, schema)
    if kind not in ("form", "multipart"):
        return Content(sent_as(name) if kind != "bytes" else _bytes_type(name), kind)
    encodings: dict[str, Encoding] = {}
    said = entry.get("encoding")
    for key, value in said.items() if isinstance(said, dict) else ():
        if isinstance(value, dict):
            encodings[key] = _encoding(value)
    binary = tuple(_files(Found(schema, file, ""), schemas, encodings)) if kind == "multipart" else ()
    return Content(sent_as(name) if kind == "form" else name, kind, encodings, binary)


def _bytes_type(name: str) -> str:
    return name if "*" not in name and "/" in name else "application/octet-stream"


def _encoding(value: dict[str, Any]) -> Encoding:
    content_type, style, explode = value.get("contentType"), value.get("style"), value.get("explode")
    return Encoding(
        content_type if isinstance(content_type, str) else None,
        style if isinstance(style, str) else None,
        explode if isinstance(explode, bool) else None,
        value.get("allowReserved") is True,
    )


def _files(found: Found, schemas: Schemas, encodings: dict[str, Encoding]) -> list[str]:
    """The properties of a multipart body that are files."""
    names: list[str] = []
    for part, file, _ in parts(found, schemas):
        properties = part.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            try:
                node = schemas.follow(schema, file).value
                if isinstance(node, dict) and node.get("type") == "array":
                    node = schemas.follow(node.get("items"), file).value
            except Dangling:
                continue
            typed = encodings[name].content_type if name in encodings else None
            untyped = isinstance(node, dict) and not {"type", "properties", "$ref", "allOf", "anyOf", "oneOf"} & node.keys()
            if is_binary(node) or (untyped and typed is not None and kind_of(typed) == "bytes"):
                names.append(name)
    return list(dict.fromkeys(names))


def parts(found: Found, schemas: Schemas) -> list[Found]:
    """A schema and the parts of its `allOf`, references followed; [] when one of them can't be had."""
    out: list[Found] = []
    seen: set[str] = set()
    waiting = [found]
    while waiting:
        try:
            part = schemas.follow(*waiting.pop())
        except Dangling:
            return []
        if part.pointer and part.place in seen:
            continue
        seen.add(part.place)
        out.append(part)
        if not isinstance(part.value, dict) or len(out) > MOST_PARTS:
            return []
        below = part.value.get("allOf")
        waiting += [Found(one, part.file, "") for one in reversed(below if isinstance(below, list) else ())]
    return out


def _whole(content: Content, schema: Any, file: str, schemas: Schemas, place: str) -> Any:
    if content.kind == "bytes":
        return BINARY
    if content.kind == "text":
        made = schemas.normalise(schema, "input", file, place) if isinstance(schema, dict) and "$ref" not in schema else {}
        return made if isinstance(made, dict) and made.get("type") == "string" else {"type": "string"}
    made = schemas.normalise(schema, "input", file, place)
    if content.binary and isinstance(made, dict):
        spread = _spread(Found(schema, file, ""), schemas, place)
        if spread is not None:
            _mark_files(spread.properties, [content])
            rest = {"additionalProperties": spread.rest} if spread.rest is not None else {}
            return {"type": "object", "properties": spread.properties, "required": list(spread.required), **rest}
    return made


def _mark_files(properties: dict[str, Any], contents: list[Content]) -> None:
    for name in {name for content in contents for name in content.binary} & properties.keys():
        schema = properties[name]
        said = {key: schema[key] for key in ("description", "deprecated") if key in schema}
        many = isinstance(schema, dict) and schema.get("type") == "array"
        properties[name] = ({"type": "array", "items": FILE} if many else FILE) | said


def _spread(found: Found, schemas: Schemas, place: str) -> Spread | None:
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
        own = Found({key: node[key] for key in ("properties", "required") if key in node}, file, f"{pointer}?")
        made = schemas.shared(own, "input") if pointer else schemas.normalise(own.value, "input", file, place)
        properties |= made.get("properties", {})
        required += made.get("required", ())
        choices += chosen
        said = node.get("additionalProperties")
        if rest is None and isinstance(said, (dict, bool)):
            rest = schemas.normalise(said, "input", file, place)
    if not properties:
        return None
    return Spread(properties, tuple(name for name in dict.fromkeys(required) if name in properties), rest, tuple(choices))


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
