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


def rehearse() -> None:
    """Compile small schemas, so that the modules are loaded and warm when a process is forked."""
    sdl = """
      "A query." type Query { thing(id: ID!, by: By = {kind: A}): Thing things(first: Int, after: String): Things u: U }
      interface Node { id: ID! } type Thing implements Node { id: ID! name: String thing(n: Int = 1): Thing! }
      type Things { nodes: [Thing] pageInfo: PageInfo! } type PageInfo { hasNextPage: Boolean! endCursor: String }
      union U = Thing | Things enum Kind { A B } input By { kind: Kind by: [By!] } type Mutation { add(by: By!): Thing }
    """
    text = {"kind": "SCALAR", "name": "String"}
    field = {"name": "a", "args": [], "type": text, "isDeprecated": False}
    query = {"kind": "OBJECT", "name": "Query", "fields": [field], "interfaces": []}
    schema = {"queryType": {"name": "Query"}, "types": [text, query], "directives": []}
    for source in (sdl.encode(), msgspec.json.encode({"__schema": schema})):
        list(compile_schema_text([b"{}", source], lambda _: None))
