"""The OpenAPI 3 view of a document, which every dialect is converted to, and that of OpenAPI 3 itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.document.document import OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class RawOperation(NamedTuple):
    """An operation as OpenAPI 3 writes it: `node` in `file`, and the parameters and servers of its path item."""

    method: str
    path: str
    node: dict[str, Any]
    file: str
    shared: Any = None
    servers: Any = None

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
        root.get("info"), root.get("servers") or [{"url": "/"}], schemes, root.get("security"), _operations(document, warn)
    )


def _operations(document: OpenApiDocument, warn: Warn) -> Iterator[RawOperation]:
    for path, item in path_items(document, warn):
        for method in METHODS:
            if method in item.value:
                node = item.value[method]
                if isinstance(node, dict):
                    parameters, servers = item.value.get("parameters"), item.value.get("servers")
                    yield RawOperation(method, path, node, item.file, parameters, servers)
                else:
                    warn(f"{method.upper()} {path}", "the operation is not an object")


def path_items(document: OpenApiDocument, warn: Warn) -> Iterator[tuple[str, DocumentNode]]:
    """Yield the paths of a document with their items, references resolved."""
    paths = document.root.get("paths")
    for path, node in paths.items() if isinstance(paths, dict) else ():
        if path.startswith("x-"):
            continue
        try:
            item = document.references.follow(node)
        except DanglingReference as error:
            warn(f"path {path!a}", str(error))
            continue
        if not isinstance(item.value, dict):
            warn(f"path {path!a}", "it is not an object")
        elif not path.startswith("/"):
            yield f"/{path}", item
        else:
            yield path, item
