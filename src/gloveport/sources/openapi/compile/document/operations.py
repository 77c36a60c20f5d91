"""The OpenAPI 3 view of a document, which every dialect is converted to, and that of OpenAPI 3 itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.document.document import OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class RawOperation(NamedTuple):
    """An operation as OpenAPI 3 writes it: `node` in `file`; and the parameters and servers of its path item.

    `item_file` is the file of the path item.
    """

    method: str
    path: str
    node: dict[str, Any]
    file: str
    shared: Any = None
    servers: Any = None
    item_file: str = ""

    @property
    def place(self) -> str:
        """The operation's method and path, for messages."""
        return f"{self.method.upper()} {self.path}"


class DocumentView(NamedTuple):
    """The content of a document, except for its schemas, in the form of OpenAPI 3."""

    info: Any
    servers: Any
    schemes: Any
    security: Any
    operations: Iterable[RawOperation]


def openapi_view(document: OpenApiDocument, warn: Warn) -> DocumentView:
    """Return the view of an OpenAPI 3 document."""
    root = document.root
    components = root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    return DocumentView(
        root.get("info"),
        root.get("servers") or [{"url": "/"}],
        schemes,
        root.get("security"),
        raw_operations(document, warn),
    )


def raw_operations(document: OpenApiDocument, warn: Warn) -> Iterator[RawOperation]:
    """Yield the operations of a document. A path item and an operation may each be a reference."""
    references = document.references
    paths = document.root.get("paths")
    for key, node in paths.items() if isinstance(paths, dict) else ():
        if key.startswith("x-"):
            continue
        path = key if key.startswith("/") else f"/{key}"
        try:
            item = references.follow(node)
        except DanglingReference as error:
            warn(f"path {key!a}", str(error))
            continue
        if not isinstance(item.value, dict):
            warn(f"path {key!a}", "it is not an object")
            continue
        shared, servers = item.value.get("parameters"), item.value.get("servers")
        for method in METHODS:
            if method not in item.value:
                continue
            place = f"{method.upper()} {path}"
            try:
                found = references.follow(item.value[method], item.file)
            except DanglingReference as error:
                warn(place, f"the operation is left out: {error}")
                continue
            if not isinstance(found.value, dict):
                warn(place, "the operation is not an object")
                continue
            for referring in (node, item.value[method]):
                if len(referring) > 1 and isinstance(referring.get("$ref"), str):
                    warn(place, "what stands beside its `$ref` is left out")
            yield RawOperation(method, path, found.value, found.file, shared, servers, item.file)
