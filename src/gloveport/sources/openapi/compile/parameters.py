"""Compile the parameters of an operation: how each is sent, and the schema of its argument."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from gloveport.sources.openapi.compile.document.document import Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.document.swagger2 import COLLECTION_FORMATS, inline_schema
from gloveport.sources.openapi.compile.schemas import MAX_DESCRIPTION_CHARS, SchemaRegistry
from gloveport.sources.openapi.operation import Parameter, Place
from gloveport.sources.openapi.reserved_headers import AUTHORIZATION, COMPUTED_HEADERS, RESERVED_HEADERS
from gloveport.sources.schemas.keywords import Schema
from gloveport.sources.texts import clean

PARAMETER_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_TEMPLATE = re.compile(r"\{([^{}]+)\}")


class Argument(NamedTuple):
    """A parameter and the schema of its argument."""

    parameter: Parameter
    schema: Schema


def template_names(path: str) -> list[str]:
    """Return the names in the braces of a path and of its query, in order."""
    return list(dict.fromkeys(_TEMPLATE.findall(path)))


def compile_parameters(
    nodes: Iterable[DocumentNode], path: str, schemas: SchemaRegistry, place: str, warn: Warn
) -> list[Argument]:
    """Return the parameters, those in the path first. A later one replaces an earlier one of the same name and place.

    A name in braces in the path's query (`/alerts?lat={lat}`) is a parameter in the path, unless the definition declares
    it as one in the query, which is sent anyway. The header `Authorization` is among them: its value is a credential.
    """
    found: dict[tuple[str, str], Argument] = {}
    for node in nodes:
        argument = _argument(node, schemas, place, warn)
        if argument is None:
            continue
        parameter = argument.parameter
        name = parameter.name.lower() if parameter.place == "header" else parameter.name
        if parameter.place == "header" and name in RESERVED_HEADERS - {AUTHORIZATION}:
            if name not in COMPUTED_HEADERS:
                warn(place, f"the header {name} is left out: no argument can set it")
            continue
        found[parameter.place, name] = argument
    required = template_names(path.partition("?")[0])
    open_names = [name for name in template_names(path) if name in required or ("query", name) not in found]
    for where, name in [key for key in found if key[0] == "path" and key[1] not in open_names]:
        warn(place, f"the parameter {name[:60]!a} is left out: the path has no place for it")
        del found[where, name]
    for name in open_names:
        if ("path", name) not in found:
            undeclared = Parameter(name, name, "path", required=True, style="simple", explode=False)
            found["path", name] = Argument(undeclared, {"type": "string"})
    in_path = [found.pop(("path", name)) for name in open_names]
    return [*in_path, *found.values()]


def _argument(node: DocumentNode, schemas: SchemaRegistry, place: str, warn: Warn) -> Argument | None:
    value = node.value
    name, where = (value.get("name"), value.get("in")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not name or not isinstance(where, str) or where not in PARAMETER_STYLES:
        problem = f"the parameter {str(name)[:60]!a} in {str(where)[:20]!a} can't be sent and is left out"
        warn(place, problem)
        return None
    media_type, schema = _schema_of(value)
    made = schemas.shared(DocumentNode(schema, node.file, f"{node.pointer}/schema"), "input") if node.pointer else None
    if made is None:
        made = schemas.normalise(schema, "input", node.file, f"{place}, parameter {name[:60]!a}")
    style, explode = _style(value, where)
    parameter = Parameter(
        name=name,
        argument=name,
        place=cast(Place, where),
        required=where == "path" or value.get("required") is True,
        style=style,
        explode=explode,
        allow_reserved=value.get("allowReserved") is True,
        content=media_type,
    )
    return Argument(parameter, _with_description(made, value))


def _schema_of(value: dict[str, Any]) -> tuple[str | None, Any]:
    content = value.get("content")
    if isinstance(content, dict) and content:
        media_type, entry = next(iter(content.items()))
        return str(media_type), entry.get("schema", {}) if isinstance(entry, dict) else {}
    schema = value.get("schema")
    return None, schema if isinstance(schema, (dict, bool)) else inline_schema(value)


def _style(value: dict[str, Any], where: str) -> tuple[str, bool]:
    style = next((known for known in PARAMETER_STYLES[where] if known == value.get("style")), PARAMETER_STYLES[where][0])
    explode = value.get("explode")
    if "schema" not in value and "content" not in value:  # Swagger 2.0
        joined, explode = COLLECTION_FORMATS.get(str(value.get("collectionFormat")), (None, False))
        style = joined if joined in PARAMETER_STYLES[where] and value.get("type") == "array" else style
    return style, explode if isinstance(explode, bool) else style in ("form", "deepObject")


def _with_description(schema: Any, value: dict[str, Any]) -> Schema:
    out = dict(schema) if isinstance(schema, dict) else {}
    if text := clean(value.get("description"), MAX_DESCRIPTION_CHARS):
        out["description"] = text
    if value.get("deprecated") is True:
        out["deprecated"] = True
    return out


def resolve_parameters(nodes: Any, file: str, schemas: SchemaRegistry, place: str, warn: Warn) -> Iterable[DocumentNode]:
    """Yield the entries of a `parameters` list, with references resolved."""
    for node in nodes if isinstance(nodes, list) else ():
        try:
            yield schemas.follow(node, file)
        except DanglingReference as error:
            warn(place, f"a parameter is left out: {error}")
