"""Check a compiled schema that came from a task, before it is stored: hostile text may have controlled the task.

What passes can't put anything into a document but names, can't make a validator slow, and is as large as a call can bear.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gloveport import bounded_json
from gloveport.errors import SourceError
from gloveport.sources.compiled_definition import ToolHead, shared_schema_names
from gloveport.sources.graphql import rows
from gloveport.sources.graphql.rows import AnyRow
from gloveport.tool_names import problem_with
from gloveport.types import MIB, join_descriptions

MAX_COMPILED_BYTES = 128 * MIB
MAX_ROWS = 500_000
MAX_TOOLS = 10_000
MAX_HEADS_BYTES = 4 * MIB
MAX_DESCRIBED_BYTES = 4 * MIB
"""Of the descriptions of arguments that a search reads; the tools after that are found without."""
MAX_DESCRIPTION_CHARS = 2000
MAX_DEFAULT_CHARS = 20_000
MAX_WARNING_CHARS = 2000
MAX_DEFINITIONS = 500
MAX_SUBSCHEMAS = 5000
"""How many schemas the input types of one tool may have in them. The validator takes 6,000 for all arguments."""
MAX_CLOSURE_STEPS = 1_000_000
"""How many references are followed, over all tools, to find out which input types belong to which tool."""

SCHEMA_LIMITS = bounded_json.JsonLimits(containers=20_000, items=100_000, depth=64)
MAX_ROW_BYTES: Mapping[type, int] = {
    rows.TypeRow: rows.MAX_TYPE_BYTES,
    rows.FieldRow: rows.MAX_FIELD_BYTES,
    rows.LiteralRow: rows.MAX_TYPE_BYTES,
}

_NAME = re.compile(rf"{rows.NAME}\Z")
_TYPE = re.compile(rf"\[{{0,20}}{rows.NAME}!?(?:\]!?){{0,20}}\Z")

Reference = Annotated[str, Meta(pattern=rf"^#/\$defs/{rows.NAME}\Z")]


class _Reference(msgspec.Struct, forbid_unknown_fields=True, rename={"ref": "$ref"}):
    ref: Reference


class _Null(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["null"]


class _Schema(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={
        "ref": "$ref",
        "any_of": "anyOf",
        "additional": "additionalProperties",
        "fewest": "minProperties",
        "most": "maxProperties",
    },
):
    """The JSON Schema that is made of GraphQL types: no patterns, and no alternative but null, so its cost is its size."""

    type: str | list[str] | UnsetType = UNSET
    ref: Reference | UnsetType = UNSET
    any_of: tuple[_Reference, _Null] | UnsetType = UNSET
    properties: dict[str, _Schema] | UnsetType = UNSET
    items: _Schema | UnsetType = UNSET
    enum: list[str | None] | UnsetType = UNSET
    required: list[str] | UnsetType = UNSET
    additional: bool | UnsetType = UNSET
    fewest: int | UnsetType = UNSET
    most: int | UnsetType = UNSET
    minimum: int | UnsetType = UNSET
    maximum: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: Any = UNSET
    deprecated: bool | UnsetType = UNSET


_BATCH = msgspec.json.Decoder(list[AnyRow])
_SCHEMA = msgspec.json.Decoder(_Schema)
_SORTED = msgspec.json.Encoder(order="sorted")


class CheckedRows:
    """The rows of one compiled schema, checked: `definitions` yields them as texts to store, then `heads` and `facts` hold.

    Each raises SourceError when something in the rows is not what a compiler gives.
    """

    def __init__(self, batches: Iterable[bytes]) -> None:
        self._batches = batches
        self._tools: list[tuple[rows.ToolRow, tuple[str, ...], str, str]] = []
        self._addresses: set[str] = set()
        self._inputs: dict[str, _Input] = {}
        self._answers: dict[str, str] = {}
        self._facts: rows.FactsRow | None = None

    def definitions(self) -> Iterator[tuple[str, bytes]]:
        """Yield the key and the text of each row."""
        keys: set[str] = set()
        size = 0
        for batch in self._batches:
            size += len(batch)
            if len(batch) > rows.MAX_BATCH_BYTES + 2 * rows.MAX_SCHEMA_BYTES or size > MAX_COMPILED_BYTES:
                raise _refused("it is too large")
            try:
                received = _BATCH.decode(batch)
            except (msgspec.DecodeError, RecursionError):
                raise _refused("a row has another form") from None
            for each in received:
                row = self._input(each) if isinstance(each, rows.InputRow) else each
                text = msgspec.json.encode(row)
                if len(text) > MAX_ROW_BYTES.get(type(row), len(text)):
                    raise _refused("a row is too large")
                key = self._key(row)
                if key in keys or len(keys) >= MAX_ROWS:
                    raise _refused("there are too many rows" if key not in keys else "two rows have the same name")
                keys.add(key)
                yield key, text

    def heads(self) -> Iterator[ToolHead]:
        """Yield the heads of the tools, with fingerprints that are computed here."""
        closures = _Closures(self._inputs)
        size = described_size = 0
        for row, parameters, shown, described in self._tools:
            if row.answer not in self._answers:
                raise _refused("an answer has no schema")
            names = tuple(dict.fromkeys(shared_schema_names(bytes(row.schema))))
            inputs = _digest([shown, closures.digest(names)])
            covered = [row.operation, row.name, row.address, row.description, inputs, self._answers[row.answer]]
            head = ToolHead(
                row.address,
                row.description,
                parameters,
                _digest(covered),
                writes=row.operation == "mutation",
                deprecated=row.deprecated,
                pages=row.pages,
            )
            size += len(head.description.encode()) + sum(map(len, parameters)) + len(head.address)
            if size > MAX_HEADS_BYTES:
                raise SourceError("its tools have too many arguments, or too long descriptions", hint="give a part of it")
            described_size += len(described.encode())
            yield msgspec.structs.replace(head, described=described) if described_size <= MAX_DESCRIBED_BYTES else head

    def facts(self) -> dict[str, Any]:
        """Return the root types and the warnings."""
        if self._facts is None:
            raise _refused("it has no end")
        return {"roots": self._facts.roots, "warnings": self._facts.warnings}

    def _key(self, row: AnyRow) -> str:
        """Check a row, and return the key that it is stored under."""
        match row:
            case rows.ToolRow():
                self._check_tool(row)
                return row.address
            case rows.InputRow():
                return f"input {row.name}"
            case rows.AnswerRow():
                self._answers[_type(row.type)] = _digest(_schema(row.schema))
                return f"answer {row.type}"
            case rows.TypeRow():
                _names(row.name, *(row.overlaps or ()), *([row.node] if row.node else ()))
                return f"type {row.name}"
            case rows.FieldNamesRow():
                _names(row.type, *row.names)
                return f"names {row.type}"
            case rows.FieldRow():
                _arguments(row)
                _type(row.answer)
                return f"field {_name(row.type)}.{_name(row.name)}"
            case rows.LiteralRow():
                _arguments(row)
                _names(row.name, *row.values)
                return f"literal {row.name}"
            case rows.FactsRow():
                _names(*row.roots)
                if any(len(warning) > MAX_WARNING_CHARS for warning in row.warnings) or len(row.warnings) > MAX_TOOLS:
                    raise _refused("a warning is too long")
                self._facts = row
                return "facts"

    def _input(self, row: rows.InputRow) -> rows.InputRow:
        """Check the schema of an input type, and return the row with its size."""
        schema = _schema(row.schema)
        # A schema that is only a reference could refer to itself, for ever.
        if schema.ref is not UNSET or schema.any_of is not UNSET:
            raise _refused("an input type is no object and no enum")
        references = tuple(dict.fromkeys(shared_schema_names(bytes(row.schema))))
        self._inputs[_name(row.name)] = _Input(_digest(schema), references, _size(schema))
        return msgspec.structs.replace(row, size=self._inputs[row.name].size)

    def _check_tool(self, row: rows.ToolRow) -> None:
        _names(row.name, *row.arguments, *(() if row.select is None else (row.select,)))
        for type_ in (row.answer, *row.arguments.values()):
            _type(type_)
        if not row.address.isascii() or len(row.address) > 2 * rows.MAX_NAME_CHARS or problem_with(row.address):
            raise _refused("an address is not legal")
        if len(row.description) > MAX_DESCRIPTION_CHARS or len(row.default) > MAX_DEFAULT_CHARS:
            raise _refused("a text is too long")
        if row.select in row.arguments or len(self._tools) >= MAX_TOOLS:
            raise _refused("there are too many tools or arguments")
        schema = _schema(row.schema)
        properties = schema.properties if isinstance(schema.properties, dict) else {}
        if schema.type != "object" or set(properties) != {*row.arguments, *([row.select] if row.select else ())}:
            raise _refused("a schema has other arguments than its tool")
        parameters = tuple(properties)
        # `select` names every field of a type: a new field there is no change of this tool.
        properties.pop(row.select or "", None)
        described = join_descriptions(one.description for one in properties.values())
        self._tools.append((row, parameters, _digest(schema), described))


class _Input(msgspec.Struct, frozen=True):
    """What closures need of an input type: its digest, what it refers to, and its size."""

    digest: str
    references: tuple[str, ...]
    size: int


class _Closures:
    """The input types that arguments refer to, directly or not."""

    def __init__(self, inputs: dict[str, _Input]) -> None:
        self._inputs = inputs
        self._digests: dict[tuple[str, ...], str] = {}
        self._steps = 0

    def digest(self, names: tuple[str, ...]) -> str:
        """Return a digest of all input types that these lead to."""
        if names not in self._digests:
            found = dict(reached(names, self._read))
            self._steps += sum(1 + within * len(self._inputs[name].references) for name, within in found.items())
            if self._steps > MAX_CLOSURE_STEPS:
                hint = "give a part of it"
                raise SourceError("its input types refer to each other too often", code="definition-too-complex", hint=hint)
            self._digests[names] = _digest({name: self._inputs[name].digest for name in found})
        return self._digests[names]

    def _read(self, name: str) -> tuple[tuple[str, ...], int]:
        if name not in self._inputs:
            raise _refused("an input type is missing")
        return self._inputs[name].references, self._inputs[name].size


def reached(names: Iterable[str], read: Any) -> Iterator[tuple[str, bool]]:
    """Yield the names of the input types that these lead to; False with those that are beyond the limits.

    `read` returns what an input type refers to, and how many schemas are in it.
    """
    seen: set[str] = set()
    waiting, left = list(dict.fromkeys(names))[::-1], MAX_SUBSCHEMAS
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        references, size = read(name)
        left -= size
        within = len(seen) <= MAX_DEFINITIONS and left >= 0
        yield name, within
        if within:
            waiting += references[::-1]


def _name(name: str) -> str:
    if len(name) > rows.MAX_NAME_CHARS or not _NAME.match(name):
        raise _refused("a name is not a name of GraphQL")
    return name


def _names(*names: str) -> None:
    for name in names:
        _name(name)


def _type(type_: str) -> str:
    if len(type_) > rows.MAX_NAME_CHARS + 100 or not _TYPE.match(type_) or type_.count("[") != type_.count("]"):
        raise _refused("a type is not a type of GraphQL")
    return type_


def _arguments(row: rows.FieldRow | rows.LiteralRow) -> None:
    _names(*row.arguments)
    for type_ in row.arguments.values():
        _type(type_)
    if not set(row.required) <= set(row.arguments):
        raise _refused("a required argument is missing")


def _schema(text: msgspec.Raw) -> _Schema:
    if len(text) > rows.MAX_SCHEMA_BYTES:
        raise _refused("a schema is too large")
    try:
        bounded_json.check(bytes(text), SCHEMA_LIMITS)
        return _SCHEMA.decode(text)
    except (ValueError, bounded_json.JsonLimitError):
        raise _refused("a schema has another form") from None


def _size(schema: _Schema) -> int:
    """Return how many schemas are in a schema, itself included."""
    below = list(schema.properties.values()) if isinstance(schema.properties, dict) else []
    below += [schema.items] if isinstance(schema.items, _Schema) else []
    return 1 + (0 if schema.any_of is UNSET else 2) + sum(map(_size, below))


def _digest(value: Any) -> str:
    return hashlib.sha256(_SORTED.encode(value)).hexdigest()


def _refused(problem: str) -> SourceError:
    return SourceError(f"its compiled form can't be used: {problem}", hint="get the definition from a place you trust")
