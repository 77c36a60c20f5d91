"""The compiled operation: everything that building its requests needs, and nothing else. The cache stores it as JSON."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Place = Literal["path", "query", "header", "cookie"]


MORE_FLAGS = ("has_more", "hasMore", "has_next", "hasNext")
"""Properties of a reply that say whether another page follows."""


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A parameter: `name` in the request, `argument` in the call.

    `content` is the media type of a value that the request holds as a text of that type, instead of in a style.
    """

    name: str
    argument: str
    place: Place
    required: bool = False
    style: str = "form"
    explode: bool = True
    allow_reserved: bool = False
    content: str | None = None


class FieldEncoding(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a form or multipart body carries one property."""

    content_type: str | None = None
    style: str | None = None
    explode: bool | None = None
    allow_reserved: bool = False


class MediaContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One media type of a body. `binary` names the properties that are files; if one is an array, each item is a file.

    Where there are several media types, `takes` names the JSON types that fit this one, and `properties` and `required`
    those of an object. Empty ones say nothing.
    """

    media_type: str
    kind: Literal["json", "form", "multipart", "bytes", "text"]
    encodings: dict[str, FieldEncoding] = {}
    binary: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


class RequestBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request body. Without `argument`, the body is the object of all arguments that are not parameters.

    The first of several contents that fits the body is used, unless the argument `content_type` names one.
    """

    contents: tuple[MediaContent, ...]
    argument: str | None = None
    required: bool = False


class Paging(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to get the next page, as far as the definition states it. A Link header with rel="next" is always followed.

    `cursor` is the argument that takes the cursor, which the reply holds at the path `at`. `number` is the argument that
    counts pages, from `first`; `offset` is the one that counts items. `items` is the path to the items of a page. A path
    is a list of keys; a number in it is an index of a list, and `-1` is the last item.
    """

    cursor: str | None = None
    at: tuple[str, ...] = ()
    number: str | None = None
    first: int = 1
    offset: str | None = None
    items: tuple[str, ...] = ()


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation. `path` is a template below a server's URL.

    `servers` are URL templates of the operation's own; without them the document's apply. `grouped` is True when names
    clash: the arguments are then `{path: {…}, query: {…}, header: {…}, cookie: {…}, body: …}`, otherwise they are flat.
    `security` lists alternatives; each names the credential slots that are needed together, and an empty one needs none.
    `produces` are the media types of successful replies, the preferred one first.
    """

    method: str
    path: str
    servers: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: RequestBody | None = None
    grouped: bool = False
    security: tuple[tuple[str, ...], ...] = ()
    produces: tuple[str, ...] = ()
    paging: Paging | None = None


class CompiledOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compiled tool as the cache stores it: the operation, and its schemas with `#/$defs/NAME` references."""

    operation: Operation
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None


class StoredOperation(msgspec.Struct, frozen=True):
    """The same with its schemas left as text until they are needed."""

    operation: Operation
    input_schema: msgspec.Raw
    output_schema: msgspec.Raw = msgspec.Raw(b"{}")
