"""The compiled form of a schema: rows that the compiler yields in batches, and that the host checks and stores.

A row is small, and a call reads only the rows that it needs. So neither a hostile schema nor a hostile selection makes one
decoding expensive.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

COMPILER_VERSION = b"graphql-1"
"""Part of the key in the definition cache: compiled forms of another version are not read."""

MAX_NAME_CHARS = 255
MAX_BATCH_BYTES = 256 * 1024
MAX_SCHEMA_BYTES = 512 * 1024
MAX_TYPE_BYTES = 16 * 1024
MAX_FIELD_BYTES = 4 * 1024
MAX_LISTED_NAMES = 2_000

NAME = r"[_A-Za-z][_0-9A-Za-z]*"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="row"):
    """The base of all rows."""


class FactsRow(Row, frozen=True, tag="facts"):
    """The names of the root types, and warnings about what was left out. It is the first row."""

    roots: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class ToolRow(Row, frozen=True, tag="tool"):
    """A query or mutation. `answer` is the type of its result; `select` the argument that selects fields of it."""

    address: str
    operation: Literal["query", "mutation"]
    name: str
    description: str
    answer: str
    schema: msgspec.Raw
    arguments: dict[str, str] = {}
    select: str | None = None
    default: str = ""
    pages: bool = False
    deprecated: bool = False


class InputRow(Row, frozen=True, tag="input"):
    """The JSON Schema of an input type, which arguments of tools refer to. The host sets `size`: the schemas in it."""

    name: str
    schema: msgspec.Raw
    size: int = 0


class AnswerRow(Row, frozen=True, tag="answer"):
    """The JSON Schema of the default result of a field of type `type`."""

    type: str
    schema: msgspec.Raw


class TypeRow(Row, frozen=True, tag="type"):
    """A type with fields to select, and which of them a field of this type gets when it is named without any.

    `overlaps` has the other types that a value of it may have; None where they are too many to list. For a connection,
    `items` is where its items are, and `node` is their type.
    """

    name: str
    kind: Literal["object", "interface", "union"]
    leaves: str
    overlaps: tuple[str, ...] | None = None
    items: Literal["", "nodes", "edges"] = ""
    node: str = ""


class FieldNamesRow(Row, frozen=True, tag="names"):
    """The first fields of a type, for error messages."""

    type: str
    names: tuple[str, ...]
    more: int = 0


class FieldRow(Row, frozen=True, tag="field"):
    """A field that can be selected: its type, and the type of each of its arguments."""

    type: str
    name: str
    answer: str
    arguments: dict[str, str] = {}
    required: tuple[str, ...] = ()


class LiteralRow(Row, frozen=True, tag="literal"):
    """An enum (`values`) or input type (`arguments`) that arguments of selected fields take.

    A type without such a row is a scalar, or too large to check here.
    """

    name: str
    values: tuple[str, ...] = ()
    arguments: dict[str, str] = {}
    required: tuple[str, ...] = ()
    one_of: bool = False


AnyRow: TypeAlias = FactsRow | ToolRow | InputRow | AnswerRow | TypeRow | FieldNamesRow | FieldRow | LiteralRow


def named_type(type_: str) -> str:
    """Return the name in the text of a type: `Book` for `[Book!]!`."""
    return type_.strip("[]!")
