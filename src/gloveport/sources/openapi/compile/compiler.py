"""Compile a document: heads and definitions of operations, shared schemas, and facts about the whole."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.openapi.compile.addresses import OperationIdentity, assign_addresses, is_generated_id
from gloveport.sources.openapi.compile.argument_schemas import ArgumentSchemas
from gloveport.sources.openapi.compile.arguments import compile_arguments
from gloveport.sources.openapi.compile.document.discovery import discovery_view
from gloveport.sources.openapi.compile.document.document import SCHEMA_POINTERS, OpenApiDocument, Warn
from gloveport.sources.openapi.compile.document.operations import DocumentView, RawOperation, openapi_view
from gloveport.sources.openapi.compile.document.references import DanglingReference
from gloveport.sources.openapi.compile.document.swagger2 import swagger_view
from gloveport.sources.openapi.compile.paging import detect_paging, returns_list
from gloveport.sources.openapi.compile.parameters import Argument, compile_parameters, resolve_parameters
from gloveport.sources.openapi.compile.request_body import CompiledBody, compile_body
from gloveport.sources.openapi.compile.responses import SuccessResponse, json_response_schema, success_response
from gloveport.sources.openapi.compile.schemas import SchemaRegistry
from gloveport.sources.openapi.compile.security import (
    Alternatives,
    credential_slots,
    security_alternatives,
    with_authorization,
)
from gloveport.sources.openapi.compile.servers import Variables, server_urls
from gloveport.sources.openapi.compile.shared_schemas import place_of, shared_names, sided_places
from gloveport.sources.openapi.frames import (
    MAX_COMPILED_BYTES,
    MAX_DESCRIPTION_CHARS,
    MAX_OPERATIONS,
    MAX_PIECE_BYTES,
    MAX_TITLE_CHARS,
    MAX_VERSION_CHARS,
    MAX_WARNINGS,
    CompiledHead,
    Dialect,
    DocumentFacts,
)
from gloveport.sources.openapi.operation import CompiledOperation, Operation, Paging
from gloveport.sources.openapi.reserved_headers import AUTHORIZATION
from gloveport.sources.texts import clean

_TAGS = re.compile(
    r"</?(?:p|br|a|b|i|em|strong|code|pre|ul|ol|li|div|span|h[1-6]|table|thead|tbody|tr|td|th|hr|img|sup|sub|blockquote)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"<(?:/p|br\s*/?|/li|/div|/h[1-6]|/tr)>", re.IGNORECASE)

MAX_NOTE_CHARS = 400

DIALECT_VIEWS: Mapping[Dialect, Callable[[OpenApiDocument, Warn], DocumentView]] = {
    "openapi": openapi_view,
    "swagger": swagger_view,
    "discovery": discovery_view,
}


class ToolText(NamedTuple):
    """A compiled operation: its head, and its definition as JSON."""

    head: CompiledHead
    text: bytes


class OpenApiCompiler:
    """Compiles one document."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document
        self._warnings: dict[str, None] = dict.fromkeys(map(plain_text, document.left_out))
        self._left_out: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._variables: Variables = {}
        self._size = 0
        self._inputs = ArgumentSchemas(self._leave_out)
        self._view = DIALECT_VIEWS[document.dialect](document, self._leave_out)
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

    def compile(self) -> tuple[list[ToolText], dict[str, bytes], DocumentFacts]:
        """Return the tools, the shared schemas by name, and the facts about the document."""
        operations = self._operations()
        names = assign_addresses(self._identity(raw) for raw in operations.values())
        made = [tool for key, raw in operations.items() if (tool := self._compile(raw, names[key])) is not None]
        shared: dict[str, bytes] = {}
        for name, schema, loosened in self._schemas.defs():
            shared[name] = self._count_bytes(msgspec.json.encode(schema))
            if loosened:
                self._inputs.loosened.add(name)
        # Which arguments cost the validator too much is known only when every schema that they refer to is.
        shared |= self._inputs.bound(shared)
        tools = [self._tool(head, compiled) for head, compiled in made]
        return tools, shared, self._facts()

    def _operations(self) -> dict[tuple[str, str], RawOperation]:
        found: dict[tuple[str, str], RawOperation] = {}
        for raw in self._view.operations:
            found.setdefault((raw.method, raw.path), raw)
            if len(found) > MAX_OPERATIONS:
                problem = f"{self._document.name} has more than {MAX_OPERATIONS:,} operations"
                raise SourceError(problem, hint="use only a part of the definition")
        if not found:
            where = "resources" if self._document.dialect == "discovery" else "paths"
            problem = f"{self._document.name} has no operations under `{where}`"
            raise SourceError(problem, hint="check that the document is complete")
        return found

    def _facts(self) -> DocumentFacts:
        info = self._view.info if isinstance(self._view.info, dict) else {}
        listed = list(self._warnings)
        if len(listed) > MAX_WARNINGS:
            listed = [*listed[:MAX_WARNINGS], f"… and {len(listed) - MAX_WARNINGS:,} more"]
        return DocumentFacts(
            title=plain_text(info.get("title"))[:MAX_TITLE_CHARS],
            version=plain_text(info.get("version"))[:MAX_VERSION_CHARS],
            description=plain_text(info.get("description")),
            dialect=self._document.dialect,
            servers=self._servers,
            variables=self._variables,
            slots=tuple(self._slots.values()),
            warnings=tuple(listed),
        )

    def _warn(self, place: str, problem: str) -> None:
        self._warnings[plain_text(f"{place[:200]}: {problem[:300]}")] = None

    def _leave_out(self, place: str, problem: str) -> None:
        """Warn about a part of an operation that its tool lacks; the tool's description says so, too.

        `place` is the method and path of the operation, or the address of the tool.
        """
        self._warn(place, problem)
        self._left_out[place][problem] = None

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

    def _compile(self, raw: RawOperation, address: str) -> tuple[CompiledHead, CompiledOperation] | None:
        node, schemas = raw.node, self._schemas
        schemas.loosened = False
        try:
            body = self._body(raw)
        except DanglingReference as error:
            self._warn(raw.place, f"the operation is left out: {error}")
            return None
        parameters, security = self._parameters(raw)
        arguments = compile_arguments(parameters, body)
        response = success_response(node.get("responses"), raw.file, schemas, raw.place, self._leave_out)
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
        self._inputs.add(address, arguments.schema, loosened=schemas.loosened)
        head = CompiledHead(
            address=address,
            description=self._description(raw),
            deprecated=node.get("deprecated") is True,
            pages=paged is not None or (raw.method == "get" and response.linked),
        )
        return head, CompiledOperation(operation, arguments.schema, response.schema)

    def _description(self, raw: RawOperation) -> str:
        text = describe(raw.node.get("summary"), raw.node.get("description"), raw.place)
        return with_note(text, self._left_out[raw.place]) if raw.place in self._left_out else text

    def _tool(self, head: CompiledHead, compiled: CompiledOperation) -> ToolText:
        text = msgspec.json.encode(compiled)
        if len(text) > MAX_PIECE_BYTES:
            self._leave_out(head.address, "its schemas are too large, and are left out")
            names = {name: {} for name in compiled.input_schema["properties"]}
            text = msgspec.json.encode(CompiledOperation(compiled.operation, {"type": "object", "properties": names}))
        if head.address in self._left_out:
            description = with_note(head.description, self._left_out[head.address])
            head = msgspec.structs.replace(head, description=description)
        return ToolText(head, self._count_bytes(text))

    def _body(self, raw: RawOperation) -> CompiledBody | None:
        node = raw.node.get("requestBody")
        if node is None:
            return None
        return compile_body(self._schemas.follow(node, raw.file), self._schemas, raw.place, self._leave_out)

    def _security(self, raw: RawOperation) -> Alternatives:
        wanted = raw.node.get("security", self._view.security)
        found = security_alternatives(wanted, self._slots)
        if wanted and not found:
            self._leave_out(raw.place, "it needs a credential of a kind that is not supported")
        return found

    def _parameters(self, raw: RawOperation) -> tuple[list[Argument], Alternatives]:
        """Return the arguments, and the alternative sets of credentials: a secret is sent by us, not by the program."""
        listed = [
            found
            for nodes, file in ((raw.shared, raw.item_file), (raw.node.get("parameters"), raw.file))
            for found in resolve_parameters(nodes, file, self._schemas, raw.place, self._leave_out)
        ]
        made = compile_parameters(listed, raw.path.partition("#")[0], self._schemas, raw.place, self._leave_out)
        security = self._security(raw)
        for one in made:
            if (one.parameter.place, one.parameter.name.lower()) == ("header", AUTHORIZATION):
                security = with_authorization(security, self._slots, one)
        used = {name for names in security for name in names}
        secret = {(slot.kind, slot.parameter.lower()) for slot in self._slots.values() if slot.name in used}
        secret.add(("header", AUTHORIZATION))
        return [one for one in made if (one.parameter.place, one.parameter.name.lower()) not in secret], security

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
    return clean(f"{short}\n\n{long}", MAX_DESCRIPTION_CHARS)


def with_note(description: str, problems: Iterable[str]) -> str:
    """Return the description followed by what its tool lacks. The note is kept whole where the two are too long."""
    note = clean(f"Incomplete: {'; '.join(problems)}.", MAX_NOTE_CHARS)
    return f"{clean(description, MAX_DESCRIPTION_CHARS - len(note) - 2)}\n\n{note}"


def plain_text(text: object) -> str:
    """Return the text without HTML markup and without hidden characters."""
    if not isinstance(text, str) or not text:
        return ""
    text = text[: MAX_DESCRIPTION_CHARS * 4]
    if "<" in text:
        text = _TAGS.sub("", _BLOCK.sub("\n", text))
    # Entities are decoded before the text is cleaned: `&#x202e;` is one of the characters that reorder a line.
    return clean(html.unescape(text) if "&" in text else text, MAX_DESCRIPTION_CHARS)
