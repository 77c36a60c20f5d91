"""Compile a document into what the cache stores: heads and definitions of operations, shared schemas, facts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.openapi.compile.addresses import OperationIdentity, assign_addresses, is_generated_id
from gloveport.sources.openapi.compile.arguments import compile_arguments
from gloveport.sources.openapi.compile.document.discovery import discovery_view
from gloveport.sources.openapi.compile.document.document import SCHEMA_POINTERS, Dialect, OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.operations import DocumentView, RawOperation, openapi_view
from gloveport.sources.openapi.compile.document.references import DanglingReference
from gloveport.sources.openapi.compile.document.swagger2 import swagger_view
from gloveport.sources.openapi.compile.fingerprints import TextDigest, closure_digests, fingerprint
from gloveport.sources.openapi.compile.paging import detect_paging, returns_list
from gloveport.sources.openapi.compile.parameters import Argument, compile_parameters, resolve_parameters
from gloveport.sources.openapi.compile.request_body import CompiledBody, compile_body
from gloveport.sources.openapi.compile.responses import SuccessResponse, json_response_schema, success_response
from gloveport.sources.openapi.compile.schemas import SchemaRegistry
from gloveport.sources.openapi.compile.security import credential_slots, security_alternatives
from gloveport.sources.openapi.compile.servers import Variables, server_urls
from gloveport.sources.openapi.compile.shared_schemas import place_of, shared_names, sided_places
from gloveport.sources.openapi.method_override import is_override, may_override
from gloveport.sources.openapi.operation import CompiledOperation, Operation, Paging
from gloveport.sources.texts import clean

COMPILER_VERSION = b"openapi 4"
MAX_OPERATIONS = 50_000
MAX_COMPILED_BYTES = 400_000_000
MAX_WARNINGS = 50
MAX_TEXT_CHARS = 1000
READ_METHODS = frozenset({"get", "head", "options", "trace", "query"})

_TAGS = re.compile(
    r"</?(?:p|br|a|b|i|em|strong|code|pre|ul|ol|li|div|span|h[1-6]|table|thead|tbody|tr|td|th|hr|img|sup|sub|blockquote)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"<(?:/p|br\s*/?|/li|/div|/h[1-6]|/tr)>", re.IGNORECASE)

DIALECT_VIEWS: Mapping[Dialect, Callable[[OpenApiDocument, Warn], DocumentView]] = {
    "openapi": openapi_view,
    "swagger": swagger_view,
    "discovery": discovery_view,
}


class OpenApiCompiler:
    """Compiles one document. Consume `definitions` first, then `defs`, `heads` and `facts`: each needs the ones before."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document
        self._warnings: dict[str, None] = {}
        self._variables: Variables = {}
        self._size = 0
        self._heads: list[tuple[ToolHead, TextDigest]] = []
        self._schema_digests: dict[str, TextDigest] = {}
        self._view = DIALECT_VIEWS[document.dialect](document, self._warn)
        self._slots = credential_slots(self._view.schemes, document.references, self._warn)
        self._servers, _ = server_urls(self._view.servers, document.base, self._variables)
        self._schemas = self._shared_schemas()

    def _shared_schemas(self) -> SchemaRegistry:
        pointer, references = SCHEMA_POINTERS[self._document.dialect], self._document.references
        try:
            found = references.find(f"#{pointer}").value
        except DanglingReference:
            found = None
        schemas = found if isinstance(found, dict) else {}
        by_place = {place_of(pointer, key): schema for key, schema in schemas.items()}
        return SchemaRegistry(references, shared_names(pointer, schemas), sided_places(by_place, references), self._warn)

    def definitions(self) -> Iterator[tuple[str, bytes]]:
        """Yield the address and the definition of each operation."""
        raws: dict[tuple[str, str], RawOperation] = {}
        for raw in self._view.operations:
            raws.setdefault((raw.method, raw.path), raw)
            if len(raws) > MAX_OPERATIONS:
                problem = f"{self._document.name} has more than {MAX_OPERATIONS:,} operations"
                raise SourceError(problem, hint="use only a part of the definition")
        if not raws:
            where = "resources" if self._document.dialect == "discovery" else "paths"
            problem = f"{self._document.name} has no operations under `{where}`"
            raise SourceError(problem, hint="check that the document is complete")
        names = assign_addresses(self._identity(raw) for raw in raws.values())
        for key, raw in raws.items():
            text = self._compile(raw, names[key])
            if text is not None:
                yield names[key], self._count_bytes(text)

    def defs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the text of each shared schema."""
        for name, text in self._schemas.defs():
            self._schema_digests[name] = TextDigest.of(text)
            yield name, self._count_bytes(text)

    def heads(self) -> Iterator[ToolHead]:
        """Yield the heads, ordered by address."""
        reached = closure_digests(self._schema_digests)
        for head, definition in sorted(self._heads, key=lambda one: one[0].address):
            shown = (head.address, head.description)
            yield msgspec.structs.replace(head, fingerprint=fingerprint(shown, definition, reached))

    def facts(self) -> dict[str, Any]:
        """Return the facts about the whole document: title, servers, credential slots, warnings."""
        info = self._view.info if isinstance(self._view.info, dict) else {}
        listed = list(self._warnings)
        if len(listed) > MAX_WARNINGS:
            listed = [*listed[:MAX_WARNINGS], f"… and {len(listed) - MAX_WARNINGS:,} more"]
        return {
            "title": plain_text(info.get("title"))[:200],
            "version": plain_text(info.get("version"))[:60] if isinstance(info.get("version"), str) else "",
            "description": plain_text(info.get("description")),
            "dialect": self._document.dialect,
            "servers": self._servers,
            "variables": self._variables,
            "slots": tuple(self._slots.values()),
            "warnings": listed,
            "siblings": self._document.references.siblings.digests,
        }

    def _warn(self, place: str, problem: str) -> None:
        self._warnings[plain_text(f"{place[:200]}: {problem[:300]}")] = None

    def _count_bytes(self, text: bytes) -> bytes:
        # A small document can have a large result: one big schema, used by thousands of operations.
        self._size += len(text)
        if self._size > MAX_COMPILED_BYTES:
            problem = f"{self._document.name} has more than {MAX_COMPILED_BYTES:,} bytes when it is compiled"
            raise SourceError(problem, hint="use only a part of the definition")
        return text

    def _identity(self, raw: RawOperation) -> OperationIdentity:
        tags, name = raw.node.get("tags"), raw.node.get("operationId")
        tag = tags[0] if isinstance(tags, list) and tags and isinstance(tags[0], str) and tags[0] else None
        named = OperationIdentity(raw.method, raw.path, name if isinstance(name, str) and name else None, tag)
        if raw.method == "get" and (named.id is None or is_generated_id(named)):
            returned = json_response_schema(raw.node.get("responses"), raw.file, self._schemas)
            return named._replace(lists=None if returned is None else returns_list(returned, self._schemas))
        return named

    def _compile(self, raw: RawOperation, address: str) -> bytes | None:
        node, schemas = raw.node, self._schemas
        try:
            body = self._body(raw)
        except DanglingReference as error:
            self._warn(raw.place, f"the operation is left out: {error}")
            return None
        security = security_alternatives(node.get("security", self._view.security), self._slots)
        parameters = self._parameters(raw, security)
        arguments = compile_arguments(parameters, body)
        response = success_response(node.get("responses"), raw.file, schemas, raw.place)
        paged = self._paging(parameters, response) if raw.method == "get" else None
        operation = Operation(
            method=raw.method.upper(),
            path=raw.path.partition("#")[0],
            servers=self._servers_of(raw),
            parameters=arguments.parameters,
            body=arguments.body,
            grouped=arguments.grouped,
            security=security,
            produces=response.produces,
            paging=paged,
        )
        overridable = may_override(operation) or any(map(is_override, arguments.schema["properties"]))
        text = msgspec.json.encode(CompiledOperation(operation, arguments.schema, response.schema))
        head = ToolHead(
            address=address,
            description=describe(node.get("summary"), node.get("description"), raw.place),
            parameters=tuple(arguments.schema["properties"]),
            fingerprint="",
            writes=raw.method not in READ_METHODS or overridable,
            deprecated=node.get("deprecated") is True,
            pages=paged is not None or (raw.method == "get" and response.linked),
        )
        self._heads.append((head, TextDigest.of(text)))
        return text

    def _body(self, raw: RawOperation) -> CompiledBody | None:
        node = raw.node.get("requestBody")
        return None if node is None else compile_body(self._schemas.follow(node, raw.file), self._schemas, raw.place)

    def _parameters(self, raw: RawOperation, security: tuple[tuple[str, ...], ...]) -> list[Argument]:
        listed = [
            found
            for nodes in (raw.shared, raw.node.get("parameters"))
            for found in resolve_parameters(nodes, raw.file, self._schemas, raw.place, self._warn)
        ]
        made = compile_parameters(listed, raw.path.partition("#")[0], self._schemas, raw.place, self._warn)
        # A secret that the definition also lists as a parameter is sent by us, not by the program.
        used = {name for names in security for name in names}
        secret = {(slot.kind, slot.parameter.lower()) for slot in self._slots.values() if slot.name in used}
        return [one for one in made if (one.parameter.place, one.parameter.name.lower()) not in secret]

    def _servers_of(self, raw: RawOperation) -> tuple[str, ...]:
        """Return the servers of the operation itself or of its path; () when the document's servers apply."""
        for nodes in (raw.node.get("servers"), raw.servers):
            if isinstance(nodes, list) and nodes:
                found, unplaced = server_urls(nodes, self._document.base, self._variables)
                if unplaced and not found:
                    self._warn(raw.place, "its server has a relative URL, and the document has no URL")
                return () if found == self._servers else found
        return ()

    def _paging(self, parameters: list[Argument], response: SuccessResponse) -> Paging | None:
        query = {one.parameter.argument: one.schema for one in parameters if one.parameter.place == "query"}
        return detect_paging(query, response.json, self._schemas)


def describe(summary: object, description: object, fallback: str) -> str:
    """Return the description of an operation in plain text: the summary, then what the description adds."""
    short, long = plain_text(summary), plain_text(description)
    if not short or long.lower().startswith(short.lower().rstrip(".")):
        return long or short or fallback
    if not long:
        return short
    return clean(f"{short}\n\n{long}", MAX_TEXT_CHARS)


def plain_text(text: object) -> str:
    """Return the text without HTML markup and without hidden characters."""
    if not isinstance(text, str) or not text:
        return ""
    text = text[: MAX_TEXT_CHARS * 4]
    if "<" in text:
        text = _TAGS.sub("", _BLOCK.sub("\n", text))
    # Entities are decoded before the text is cleaned: `&#x202e;` is one of the characters that reorder a line.
    return clean(html.unescape(text) if "&" in text else text, MAX_TEXT_CHARS)
