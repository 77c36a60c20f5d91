"""The task that compiles a GraphQL schema: it runs in a jailed process, because the schema is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from gloveport.errors import SourceError
from gloveport.sources.graphql.compile.compiler import compile_rows
from gloveport.sources.graphql.compile.definition import read_schema
from gloveport.sources.graphql.rows import MAX_BATCH_BYTES, AnyRow


class CompileHeader(msgspec.Struct, frozen=True):
    """Where the text is from: a `file`, in SDL or JSON, or the `reply` to an introspection query."""

    form: str = "file"


def rehearse() -> None:
    """Compile small schemas, so that everything is loaded."""
    types = b'type Q { a: Int b: [Q!]! } input I { a: String = "b" } enum E { A B }'
    sdl = b'"""A."""\ntype Query { a(b: I, c: [E!]): Q } ' + types
    for text in (sdl, b"type Query {", b'{"__schema": {}}'):
        for form in ("file", "reply"):
            try:
                list(compile_schema_text([msgspec.json.encode({"form": form}), text], lambda _: None))
            except SourceError:
                continue


def compile_schema_text(parts: list[bytes], ask: Callable[[bytes], bytes | None]) -> Iterator[bytes]:
    """Yield the compiled schema as batches, each a JSON list of rows; raise SourceError. `parts` are header and text."""
    header = msgspec.json.decode(parts[0], type=CompileHeader)
    try:
        yield from _batches(compile_rows(read_schema(parts[1], reply=header.form == "reply")))
    except RecursionError:
        raise SourceError("types are nested too deeply", hint="correct the definition") from None


def _batches(rows: Iterable[AnyRow]) -> Iterator[bytes]:
    batch: list[bytes] = []
    size = 0
    for row in rows:
        text = msgspec.json.encode(row)
        if size + len(text) > MAX_BATCH_BYTES and batch:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    yield b"[" + b",".join(batch) + b"]"
