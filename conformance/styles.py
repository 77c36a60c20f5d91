"""A definition with every parameter style, body type and credential location."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

ONE = {"type": "integer", "minimum": 1, "maximum": 99}
TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean"}
MANY = {"type": "array", "items": {"type": "string", "enum": ["teal", "jade", "rust"]}, "minItems": 1, "uniqueItems": True}


def _object(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


RECORD = _object(
    ["x", "hue"], x={"type": "integer", "minimum": 1, "maximum": 9}, hue={"type": "string", "enum": ["teal", "jade"]}
)
FLAT = _object(["name", "count"], name=TEXT, count=ONE, tags=MANY)
NESTED = _object(
    ["name", "count"],
    name=TEXT,
    count=ONE,
    ratio={"type": "number"},
    on=FLAG,
    tags=MANY,
    where=RECORD,
    at={"type": "string", "format": "date-time"},
)
FILE = {"type": "string", "format": "binary"}
FORM = "application/x-www-form-urlencoded"
WAYS = {"joined": False, "exploded": True}


# Prism 5.14 misreads these or crashes: lists and objects in a path, spaceDelimited (it expects a literal `%20`), repeated
# fields of a form, and a JSON part (it reads both as text).
BEYOND_PRISM = ("/simple_", "/label_", "/matrix_", "/query/space", "/body/form", "/body/several", "/body/multipart")


def document_for_prism() -> Json:
    """Return the part of the definition that Prism can validate, and simpler forms of the rest."""
    whole = document()
    paths = {path: item for path, item in whole["paths"].items() if not path.startswith(BEYOND_PRISM)}
    for style in ("simple", "label", "matrix"):
        paths[f"/one/{style}/{{one}}"] = {"get": _operation(f"one_{style}", _parameter("one", "path", ONE, style=style))}
    plain = _object(["name", "count"], name=TEXT, count=ONE)
    paths["/body/form"] = {"post": _operation("body_form", content={FORM: {"schema": plain}})}
    paths["/body/several"] = {
        "post": _operation("body_several", content={"application/json": {"schema": plain}, FORM: {"schema": plain}})
    }
    files = {"schema": _object(["name", "file"], name=TEXT, file=FILE), "encoding": {"file": {"contentType": "image/png"}}}
    paths["/body/multipart"] = {"post": _operation("body_multipart", content={"multipart/form-data": files})}
    return {**whole, "paths": paths}


def document() -> Json:
    """Return the definition."""
    schemes = {
        "key": {"type": "apiKey", "in": "query", "name": "api_key"},
        "login": {"type": "http", "scheme": "basic"},
        "token": {"type": "http", "scheme": "bearer"},
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Every style of parameter and kind of body", "version": "1"},
        "paths": {**_paths(), **_queries(), **_bodies(), **_secured()},
        "components": {"securitySchemes": schemes},
    }


def _operation(name: str, *parameters: Json, content: Json | None = None, **more: Any) -> Json:
    answered = {"200": {"description": "ok", "content": {"application/json": {"schema": {}}}}}
    out = {"operationId": name, "responses": answered, **more}
    if parameters:
        out["parameters"] = list(parameters)
    if content:
        out["requestBody"] = {"required": True, "content": content}
    return out


def _parameter(name: str, place: str, schema: Json, **more: Any) -> Json:
    return {"name": name, "in": place, "required": True, "schema": schema, **more}


def _three(place: str, prefix: str = "", **more: Any) -> list[Json]:
    return [
        _parameter(f"{prefix}{name}", place, schema, **more)
        for name, schema in (("one", ONE), ("many", MANY), ("record", RECORD))
    ]


def _paths() -> Json:
    out = {"/text/{text}/end": {"get": _operation("path_text", _parameter("text", "path", TEXT))}}
    for style in ("simple", "label", "matrix"):
        for way, explode in WAYS.items():
            name = f"{style}_{way}"
            parameters = _three("path", style=style, explode=explode)
            out[f"/{name}/{{one}}/{{many}}/{{record}}"] = {"get": _operation(f"path_{name}", *parameters)}
    return out


def _queries() -> Json:
    filtered = {"name": "filter", "in": "query", "required": True, "content": {"application/json": {"schema": RECORD}}}
    joined: Json = {"explode": False}
    out = {
        "/query/space": {
            "get": _operation("query_space", _parameter("many", "query", MANY, style="spaceDelimited", **joined))
        },
        "/query/pipe": {
            "get": _operation("query_pipe", _parameter("many", "query", MANY, style="pipeDelimited", **joined))
        },
        "/query/deep": {
            "get": _operation("query_deep", _parameter("record", "query", RECORD, style="deepObject", explode=True))
        },
        "/query/content": {"get": _operation("query_content", filtered)},
        "/query/reserved": {"get": _operation("query_reserved", _parameter("text", "query", TEXT, allowReserved=True))},
        "/cookie": {"get": _operation("cookie", _parameter("one", "cookie", ONE), _parameter("flag", "cookie", FLAG))},
    }
    for way, explode in WAYS.items():
        more = [_parameter("flag", "query", FLAG), _parameter("text", "query", TEXT)]
        out[f"/query/{way}"] = {"get": _operation(f"query_{way}", *_three("query", explode=explode), *more)}
        out[f"/header/{way}"] = {"get": _operation(f"header_{way}", *_three("header", "X-", explode=explode))}
    return out


def _bodies() -> Json:
    deep = {
        "schema": _object(["amount", "where"], amount=ONE, where=RECORD),
        "encoding": {"where": {"style": "deepObject", "explode": True}},
    }
    files = {
        "schema": _object(["name", "file"], name=TEXT, file=FILE, where=RECORD),
        "encoding": {"file": {"contentType": "image/png"}},
    }
    flat = {"schema": FLAT}
    clash = [_parameter("name", "path", TEXT), _parameter("name", "query", ONE)]
    return {
        "/body/json": {"post": _operation("body_json", content={"application/json": {"schema": NESTED}})},
        "/body/list": {
            "put": _operation("body_list", content={"application/json": {"schema": {"type": "array", "items": RECORD}}})
        },
        "/body/vendor": {"patch": _operation("body_vendor", content={"application/vnd.thing+json": {"schema": NESTED}})},
        "/body/form": {"post": _operation("body_form", content={FORM: flat})},
        "/body/deep": {"post": _operation("body_deep", content={FORM: deep})},
        "/body/multipart": {"post": _operation("body_multipart", content={"multipart/form-data": files})},
        "/body/bytes": {"post": _operation("body_bytes", content={"application/octet-stream": {"schema": FILE}})},
        "/body/text": {"post": _operation("body_text", content={"text/plain": {"schema": {"type": "string"}}})},
        "/body/several": {"post": _operation("body_several", content={"application/json": flat, FORM: flat})},
        "/body/clash/{name}": {"post": _operation("body_clash", *clash, content={"application/json": flat})},
    }


def _secured() -> Json:
    return {
        f"/safe/{name}": {"get": _operation(f"safe_{name}", security=[{name: []}])} for name in ("key", "login", "token")
    }
