"""The compiled form of a server's list of tools, and the check of it: hostile text may have controlled the compiler."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.definition_cache import LazySchema
from gloveport.tool_names import problem_with
from gloveport.types import MIB, Tool

MAX_NAME_CHARS = 1000
"""How long the server's own name of a tool may be."""
MAX_IDENTIFIER_CHARS = 200
MAX_DESCRIPTION_CHARS = 2000
MAX_SCHEMA_BYTES = 256 * 1024
MAX_BATCH_BYTES = 256 * 1024
MAX_COMPILED_BYTES = 64 * MIB
MAX_WARNINGS = 100
MAX_WARNING_CHARS = 1000
RESERVED_GROUP_NAMES = frozenset({"resources", "prompts"})
"""Names that a server's own tools never get: `server_features` mounts resources and prompts below them."""


class ServerToolRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="row", tag="tool"):
    """A tool: the server's name for it, its identifier, and its texts and schemas."""

    name: str
    identifier: str
    description: str
    takes: msgspec.Raw
    gives: msgspec.Raw


class WarningRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="row", tag="warning"):
    """A warning about something that was left out."""

    text: str


class ServerTool(msgspec.Struct, frozen=True, gc=False):
    """A tool of ours, the name that the server knows it by, and a fingerprint of all that an agent or person is shown.

    Its schemas are kept as JSON texts, and the tool decodes them on first use. As objects, those of a hostile list would be
    so many that each full garbage collection of the process held the interpreter lock for 0.1 s.
    """

    tool: Tool
    name: str
    fingerprint: str
    takes: bytes
    gives: bytes


_BATCH = msgspec.json.Decoder(list[ServerToolRow | WarningRow])
_SORTED = msgspec.json.Encoder(order="sorted")


def check_rows(
    source: str, batches: Sequence[bytes], read_only: Mapping[str, bool], *, trust_annotations: bool
) -> tuple[dict[str, ServerTool], list[str]]:
    """Return the compiled tools by address, and warnings; raise SourceError for rows that no compiler gives.

    `read_only` has the tools that the server listed, and whether it calls them read-only. That counts only where the user
    trusts its annotations, and it is never taken from the rows (B6).
    """
    found: dict[str, ServerTool] = {}
    names: set[str] = set()
    warnings: list[str] = []
    for row in _rows(batches):
        if isinstance(row, WarningRow):
            warnings.append(row.text[:MAX_WARNING_CHARS])
            continue
        address = f"{source}.{row.identifier}"
        if row.name not in read_only or row.name in names or address in found:
            raise _refused("a tool is not in the list, or is in it twice")
        names.add(row.name)
        writes = not (trust_annotations and read_only[row.name])
        found[address] = _checked(address, row, writes)
    return found, warnings[:MAX_WARNINGS]


def _rows(batches: Sequence[bytes]) -> Iterable[ServerToolRow | WarningRow]:
    if sum(map(len, batches)) > MAX_COMPILED_BYTES:
        raise _refused("it is too large")
    for batch in batches:
        if len(batch) > MAX_BATCH_BYTES + 4 * MAX_SCHEMA_BYTES:
            raise _refused("it is too large")
        try:
            yield from _BATCH.decode(batch)
        except (msgspec.DecodeError, RecursionError):
            raise _refused("a row has another form") from None


def _checked(address: str, row: ServerToolRow, writes: bool) -> ServerTool:
    name = row.identifier
    if len(name) > MAX_IDENTIFIER_CHARS or not name.isascii() or problem_with(name) or name in RESERVED_GROUP_NAMES:
        raise _refused("an identifier is not legal")
    if len(row.description) > MAX_DESCRIPTION_CHARS:
        raise _refused("a description is too long")
    takes, gives = _schema(row.takes), _schema(row.gives)
    if takes is None:
        raise _refused("a tool has no input schema")
    tool = Tool(address, row.description, takes, gives, kind="mcp", writes=writes)
    texts = bytes(row.takes), bytes(row.gives)
    decode = msgspec.json.decode
    output = None if gives is None else LazySchema(decode, texts[1])
    taken = LazySchema(decode, texts[0])
    kept = replace(tool, input_schema=taken, output_schema=output, named=tool.parameters, described=tool.parameter_text)
    return ServerTool(kept, row.name, fingerprint(tool), *texts)


def fingerprint(tool: Tool) -> str:
    """Return the SHA-256 (hex) of all that an agent or a person is shown of a tool."""
    # Keys are sorted, but the order of the properties is that of positional arguments.
    takes, gives = dict(tool.input_schema), None if tool.output_schema is None else dict(tool.output_schema)
    shown = [tool.address, tool.description, takes, gives, tool.writes, tool.parameters]
    return hashlib.sha256(_SORTED.encode(shown)).hexdigest()


def _schema(text: msgspec.Raw) -> dict[str, Any] | None:
    if len(text) > MAX_SCHEMA_BYTES:
        raise _refused("a schema is too large")
    try:
        return msgspec.json.decode(text, type=dict[str, Any] | None)
    except (msgspec.DecodeError, RecursionError):
        raise _refused("a schema has another form") from None


def _refused(problem: str) -> SourceError:
    return SourceError(f"the compiled list of tools can't be used: {problem}", hint="check that you trust the server")
