"""Check what the compiler of a definition sends, as untrusted data: a hostile definition may control its process.

What matters for safety is derived here from what was received and will be stored: the names of the arguments, whether an
operation writes, and the fingerprint. The schemas are checked when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import CredentialSlot, ToolHead
from gloveport.sources.openapi.fingerprints import TextDigest, closure_digests, fingerprint
from gloveport.sources.openapi.frames import (
    FACTS,
    MAX_COMPILED_BYTES,
    MAX_DESCRIPTION_CHARS,
    MAX_FIT_NAMES,
    MAX_OPERATIONS,
    MAX_PIECE_BYTES,
    MAX_SERVERS,
    MAX_SLOTS,
    MAX_TITLE_CHARS,
    MAX_URL_CHARS,
    MAX_VERSION_CHARS,
    MAX_WARNING_CHARS,
    MAX_WARNINGS,
    SERVER_URL,
    SHARED_SCHEMA,
    TOOL,
    CompiledHead,
    DocumentFacts,
)
from gloveport.sources.openapi.method_override import is_override, may_override
from gloveport.sources.openapi.operation import Operation, StoredOperation
from gloveport.sources.texts import clean
from gloveport.tool_names import problem_with
from gloveport.types import join_descriptions

MAX_ADDRESS_CHARS = 1000
MAX_PATH_CHARS = 20_000
MAX_NAME_CHARS = 2000
MAX_VARIABLES = 5000
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
METHODS = READ_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
PARAMETER_STYLES = frozenset({"simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"})

_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_]{1,400}")


class _Property(msgspec.Struct):
    """The description of an argument."""

    description: Any = None


class _Properties(msgspec.Struct):
    """The names and the descriptions of the arguments in an input schema."""

    properties: dict[str, _Property | bool] = {}


class _Tool(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a tool until its head can be made. The garbage collector does not look at it: see TextDigest."""

    description: str
    parameters: tuple[str, ...]
    digest: TextDigest
    writes: bool
    deprecated: bool
    pages: bool
    described: str


class CheckedFrames:
    """The parts of a compiled definition in the order in which the cache takes them; `name` is for messages.

    Raises SourceError where a frame breaks a rule that our compiler keeps.
    """

    def __init__(self, frames: Iterable[bytes], name: str) -> None:
        self._frames = iter(frames)
        self._name = name
        self._size = 0
        self._tools: dict[str, _Tool] = {}
        self._needed_slots: dict[str, str] = {}
        self._schemas: dict[str, TextDigest] = {}
        self._frame: tuple[bytes, bytes] = (b"", b"")
        self._facts: DocumentFacts | None = None

    def definitions(self) -> Iterator[tuple[str, bytes]]:
        """Yield the address and the definition of each tool."""
        while self._next() == TOOL:
            line, _, text = self._frame[1].partition(b"\n")
            try:
                head = msgspec.json.decode(line, type=CompiledHead)
                stored = msgspec.json.decode(text, type=StoredOperation)
                properties = msgspec.json.decode(stored.input_schema, type=_Properties).properties
            except (msgspec.DecodeError, RecursionError):
                raise self._refusal("describes a tool in an unknown form") from None
            operation, names = stored.operation, tuple(properties)
            self._check_tool(head, operation, names)
            self._tools[head.address] = _Tool(
                description=clean(head.description, MAX_DESCRIPTION_CHARS),
                parameters=names,
                digest=TextDigest.of(text),
                writes=is_writing(operation, names),
                deprecated=head.deprecated,
                pages=head.pages and operation.method == "GET",
                described=join_descriptions(one.description for one in properties.values() if isinstance(one, _Property)),
            )
            if len(self._tools) > MAX_OPERATIONS:
                raise self._refusal(f"has more than {MAX_OPERATIONS:,} operations")
            yield head.address, text

    def defs(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the text of each shared schema."""
        while self._frame[0] == SHARED_SCHEMA:
            name, _, text = self._frame[1].partition(b"\n")
            shown = name.decode("ascii", "replace")
            if not _SCHEMA_NAME.fullmatch(shown) or shown in self._schemas:
                raise self._refusal("has a shared schema without a name of its own")
            self._schemas[shown] = TextDigest.of(text)
            yield shown, text
            self._next()

    def heads(self) -> Iterator[ToolHead]:
        """Yield the heads, ordered by address."""
        self._read_facts()
        self._check_namespaces()
        reached = closure_digests(self._schemas)
        for address in sorted(self._tools):
            tool = self._tools[address]
            yield ToolHead(
                address=address,
                description=tool.description,
                parameters=tool.parameters,
                fingerprint=fingerprint((address, tool.description), tool.digest, reached),
                writes=tool.writes,
                deprecated=tool.deprecated,
                pages=tool.pages,
                described=tool.described,
            )

    def facts(self) -> dict[str, Any]:
        """Return the facts about the document, to be stored."""
        assert self._facts is not None, "heads come first"
        facts = self._facts
        return {
            "title": clean(facts.title, MAX_TITLE_CHARS),
            "version": clean(facts.version, MAX_VERSION_CHARS),
            "description": clean(facts.description, MAX_DESCRIPTION_CHARS),
            "dialect": facts.dialect,
            "servers": facts.servers,
            "variables": facts.variables,
            "slots": facts.slots,
            "warnings": [clean(warning, MAX_WARNING_CHARS) for warning in facts.warnings],
        }

    def _next(self) -> bytes:
        """Take the next frame, and return its kind; an empty one at the end."""
        frame = next(self._frames, b"")
        self._size += len(frame)
        if len(frame) > MAX_PIECE_BYTES * 2 or self._size > MAX_COMPILED_BYTES:
            raise self._refusal("is too large when it is compiled")
        self._frame = frame[:1], frame[1:]
        return self._frame[0]

    def _check_tool(self, head: CompiledHead, operation: Operation, names: tuple[str, ...]) -> None:
        address = head.address
        if len(address) > MAX_ADDRESS_CHARS or any(problem_with(step) for step in address.split(".")):
            raise self._refusal(f"has an operation with the address {address[:100]!a}, which is not legal")
        if address in self._tools:
            raise self._refusal(f"has two operations with the address {address}")
        strings = [operation.path, *names, *operation.produces]
        for parameter in operation.parameters:
            strings += [parameter.name, parameter.argument, parameter.content or ""]
            if parameter.style not in PARAMETER_STYLES:
                raise self._refusal(f"has an unknown style at {address}")
        for content in operation.body.contents if operation.body else ():
            strings += [content.media_type, *content.takes, *content.properties, *content.required]
            if max(map(len, (content.takes, content.properties, content.required))) > MAX_FIT_NAMES:
                raise self._refusal(f"has a body with too many names at {address}")
        if operation.method not in METHODS or not operation.path.startswith("/"):
            raise self._refusal(f"has an operation at {address} that can't be sent")
        if len(operation.path) > MAX_PATH_CHARS or any(len(text) > MAX_NAME_CHARS for text in strings[1:]):
            raise self._refusal(f"has a name at {address} that is too long")
        self._check_servers(operation.servers)
        self._needed_slots |= {name: address for alternative in operation.security for name in alternative}

    def _check_servers(self, servers: tuple[str, ...]) -> None:
        if len(servers) > MAX_SERVERS:
            raise self._refusal("has too many servers")
        for server in servers:
            if len(server) > MAX_URL_CHARS * 2 or not SERVER_URL.fullmatch(server):
                raise self._refusal(f"has the server {server[:100]!a}, which is not a URL")

    def _check_namespaces(self) -> None:
        """Refuse a tool that is also a namespace: `tools.x.list.pages` must mean the pages of `tools.x.list`."""
        for address in self._tools:
            steps = address.split(".")
            if any(".".join(steps[:count]) in self._tools for count in range(1, len(steps))):
                raise self._refusal(f"has an operation with the address {address}, below another operation")

    def _read_facts(self) -> None:
        kind, text = self._frame
        if kind != FACTS or not self._tools or self._next():
            raise self._refusal("was not compiled to its end")
        try:
            facts = msgspec.json.decode(text, type=DocumentFacts)
        except (msgspec.DecodeError, RecursionError):
            raise self._refusal("states facts in an unknown form") from None
        if len(facts.warnings) > MAX_WARNINGS + 1 or len(facts.slots) > MAX_SLOTS or len(facts.variables) > MAX_VARIABLES:
            raise self._refusal("states too many facts")
        self._check_servers(facts.servers)
        slots = {slot.name for slot in facts.slots}
        if len(slots) < len(facts.slots) or not all(map(_is_legal_slot, facts.slots)):
            raise self._refusal("has a credential slot that is not legal")
        for name, address in self._needed_slots.items():
            if name not in slots:
                raise self._refusal(f"needs a credential at {address} that it does not describe")
        self._facts = facts

    def _refusal(self, problem: str) -> SourceError:
        return SourceError(f"{self._name} {problem}", hint="use a part of it, or get it again from where it came from")


def is_writing(operation: Operation, arguments: Iterable[str]) -> bool:
    """Return True unless the method only reads, and nothing in the request can ask for another method."""
    return operation.method not in READ_METHODS or may_override(operation) or any(map(is_override, arguments))


def _is_legal_slot(slot: CredentialSlot) -> bool:
    urls = (slot.authorization_url, slot.token_url, slot.discovery_url)
    texts = (slot.parameter, slot.description, *urls, *slot.scopes)
    return problem_with(slot.name) is None and all(len(text) <= MAX_NAME_CHARS for text in texts)
