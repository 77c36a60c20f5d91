"""A parsed document: bytes in JSON or YAML → plain values, the dialect, and a resolver for its references.

Whatever the bytes are, the result is a document or a SourceError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from gloveport.errors import SourceError
from gloveport.sources.openapi.compile.document.references import ReadFile, References, SiblingFiles
from gloveport.sources.openapi.compile.document.utcp import MAX_MANUAL_BYTES, as_openapi
from gloveport.sources.openapi.frames import MAX_DOCUMENT_BYTES, Dialect

Warn = Callable[[str, str], None]
"""Reports a part that is left out: its place in the document, and the problem."""

SCHEMA_POINTERS = {"openapi": "/components/schemas", "swagger": "/definitions", "discovery": "/schemas"}

_SPACED_COLON = re.compile(rb'"\s+:')
_ESCAPED_QUOTE = b"\\u0022"
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """A parsed definition. `base` is the URL it came from, or the folder of its file; messages call it `name`.

    `left_out` says which parts it had that are not in `root`.
    """

    name: str
    root: dict[str, Any]
    dialect: Dialect
    base: str
    references: References
    left_out: tuple[str, ...] = ()


def parse_document(
    raw: bytes, base: str, name: str, read_sibling: ReadFile | None = None, *, is_manual: bool = False
) -> OpenApiDocument:
    """Return the document that the bytes hold; raises SourceError with the reason when they hold none.

    `read_sibling` reads a file beside the document, by its path below the document's folder. A document that is not a
    file has none.
    """
    if is_manual and len(raw) > MAX_MANUAL_BYTES:
        raise SourceError(f"{name} has more than {MAX_MANUAL_BYTES:,} bytes", hint="use a part of it")
    root, left_out = parse_text(raw, name), ()
    if is_manual:
        root, left_out = as_openapi(root, name)
    if not isinstance(root, dict):
        raise SourceError(f"{name} is not a definition: it holds no object", hint="give an OpenAPI or discovery document")
    dialect = _dialect(root, name)
    siblings = SiblingFiles(base, read_sibling, parse_text, MAX_DOCUMENT_BYTES - len(raw))
    references = References(root, siblings, SCHEMA_POINTERS["discovery"] if dialect == "discovery" else None)
    return OpenApiDocument(name, root, dialect, base, references, left_out)


def parse_text(raw: bytes, name: str) -> Any:
    """Return the value of a text in JSON or YAML; messages call the text `name`."""
    if len(raw) > MAX_DOCUMENT_BYTES:
        hint = "use a smaller definition: one version, or one part of the service"
        raise SourceError(f"{name} has {len(raw):,} bytes, more than {MAX_DOCUMENT_BYTES:,}", hint=hint)
    raw = _to_utf8(raw, name)
    start = raw[:1000].lstrip()[:1]
    if start in (b"{", b"["):
        try:
            return _parse_json(raw, name)
        except orjson.JSONDecodeError as error:
            if not _may_be_yaml(raw):
                _refuse(name, f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    # Imported here because the YAML library takes long to load and most documents are JSON.
    from gloveport.sources.openapi.compile.document.yaml import parse_yaml

    return parse_yaml(raw, name)


def _dialect(root: dict[str, Any], name: str) -> Dialect:
    version = str(root.get("openapi") or "")
    if re.match(r"3\.\d", version):
        return "openapi"
    if str(root.get("swagger") or "").startswith("2"):
        return "swagger"
    if root.get("kind") == "discovery#restDescription" or ("discoveryVersion" in root and "resources" in root):
        return "discovery"
    stated = version or root.get("swagger") or root.get("swaggerVersion")
    problem = f"is of version {str(stated)[:40]!a}" if stated else "is neither an OpenAPI nor a discovery document"
    hint = "OpenAPI 3.1 and 3.0, Swagger 2.0 and Google's discovery documents can be read"
    raise SourceError(f"{name} {problem}", hint=hint)


def _to_utf8(raw: bytes, name: str) -> bytes:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            try:
                return raw[len(mark) :].decode(encoding).encode()
            except UnicodeError:
                _refuse(name, f"is not the {encoding.upper()} that it says it is")
    return raw


def _may_be_yaml(raw: bytes) -> bool:
    # `{openapi: 3.1.0, …}` is YAML's flow style: its keys need no quotes, but keys in JSON do.
    return re.match(rb"\s*\{\s*[A-Za-z#]", raw) is not None


def _parse_json(raw: bytes, name: str) -> Any:
    value = orjson.loads(raw)
    # A key that occurs twice means different things to different readers, so it is refused. Comparing the number of keys
    # in the text and in the value is fast; the slow check runs only where that comparison can't tell.
    try:
        again = orjson.dumps(value)
    except orjson.JSONEncodeError:
        _refuse(name, "is nested deeper than 250 levels")
    if _ESCAPED_QUOTE in raw or _SPACED_COLON.search(raw) or raw.count(b'":') != again.count(b'":'):
        json.loads(raw, object_pairs_hook=lambda pairs: _refuse_duplicates(pairs, name))
    return value


def _refuse_duplicates(pairs: list[tuple[str, Any]], name: str) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            _refuse(name, f"has the key {key[:100]!a} twice in one object")
        seen.add(key)


def _refuse(name: str, problem: str) -> NoReturn:
    raise SourceError(f"{name} {problem}", hint="correct the definition, or get it again from where it came from")
