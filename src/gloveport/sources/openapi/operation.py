"""An operation as it is called: everything that building its request needs, and nothing else. Kept as JSON on the cache."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Place = Literal["path", "query", "header", "cookie"]


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A parameter: `name` on the wire, `argument` in the call. `content` is its media type where it is sent as one."""

    name: str
    argument: str
    place: Place
    required: bool = False
    style: str = "form"
    explode: bool = True
    allow_reserved: bool = False
    content: str | None = None


class FieldEncoding(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one property of a form or multipart body is sent."""

    content_type: str | None = None
    style: str | None = None
    explode: bool | None = None
    allow_reserved: bool = False


class MediaContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One media type of a body. `binary` names the properties that are files; of type array, each item is a file."""

    media_type: str
    kind: Literal["json", "form", "multipart", "bytes", "text"]
    encodings: dict[str, FieldEncoding] = {}
    binary: tuple[str, ...] = ()


class RequestBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request body. Without `argument`, it is the object of all arguments that are no parameters.

    Of several contents the first is sent, unless the argument `content_type` names another.
    """

    contents: tuple[MediaContent, ...]
    argument: str | None = None
    required: bool = False


class Paging(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to get the next page, as far as the definition tells; a Link header with rel="next" is always followed.

    `cursor`: the argument that takes the cursor found at `at` (a path of keys) in the answer.
    `number`: the argument that counts pages, from `first`; `offset`: the one that counts items. `items` is the path to the
    page's items. In a path, a number is a place in a list, `-1` the last.
    """

    cursor: str | None = None
    at: tuple[str, ...] = ()
    number: str | None = None
    first: int = 1
    offset: str | None = None
    items: tuple[str, ...] = ()


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation. `path` is the template below a server's URL; `servers` are its own, as templates; else the document's.

    `grouped`: the arguments are `{path: {…}, query: {…}, header: {…}, cookie: {…}, body: …}` because names clash; else they
    are flat. `security` lists alternatives; each is the names of the slots that are needed together (empty: none needed).
    `produces` are the media types of its successful replies, the one to ask for first.
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
    """What a compiled tool holds on the cache: the operation, and its schemas with `#/$defs/NAME` references."""

    operation: Operation
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
