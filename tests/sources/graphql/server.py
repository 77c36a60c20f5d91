"""A GraphQL server on loopback: graphql-core executes the library's schema on state that mutations really change.

As a program it prints its URL and serves until its standard input ends.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from graphql import GraphQLError, GraphQLSchema, NoSchemaIntrospectionCustomRule, build_schema, graphql, parse, validate
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

SDL = (Path(__file__).parent / "library.graphql").read_text()


@dataclass
class Library:
    """The state, what was asked, and how the server is to behave."""

    books: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    token: str | None = None
    refusal: int = 401
    introspection: bool = True
    old: bool = False
    url: str = ""

    def fill(self, count: int) -> None:
        for number in range(1, count + 1):
            self.add(f"Book {number}", "NOVEL", "a1")

    def add(self, title: str, genre: str, author: str | None) -> dict[str, Any]:
        book = Typed("Book", id=f"b{len(self.books) + 1}", title=title, genre=genre, author=author)
        self.books[book["id"]] = book
        return book


class Typed(dict):
    """An object that knows its GraphQL type."""

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(values)
        self.kind = kind


AUTHOR = Typed("Author", id="a1", name="Ada", born=1815, apiToken="canary-of-ada", books=[])
RESOLVERS: dict[str, dict[str, Any]] = {}


def resolver(kind: str) -> Any:
    def keep(function: Any) -> Any:
        RESOLVERS.setdefault(kind, {})[function.__name__.rstrip("_")] = function
        return function

    return keep


@resolver("Query")
def book(_: Any, info: Any, id: str) -> Any:
    return info.context.books.get(id)


@resolver("Query")
def books(_: Any, info: Any, first: int | None = None, after: str | None = None, filter: Any = None, **_rest: Any) -> Any:
    if first is None:
        raise GraphQLError("You must provide `first` to page through books.")
    found = [one for one in info.context.books.values() if not filter or one["genre"] == filter.get("genre", one["genre"])]
    start = int(after or 0)
    page = found[start : start + first]
    more = start + first < len(found)
    return {
        "nodes": page,
        "edges": [{"cursor": str(start + 1 + place), "node": one} for place, one in enumerate(page)],
        "pageInfo": {"hasNextPage": more, "endCursor": str(start + len(page))},
        "totalCount": len(found),
    }


@resolver("Query")
def author(_: Any, info: Any, id: str) -> Any:
    return AUTHOR if id == "a1" else None


@resolver("Query")
def node(_: Any, info: Any, id: str) -> Any:
    return AUTHOR if id == "a1" else info.context.books.get(id)


@resolver("Query")
def search(_: Any, info: Any, text: str, select: bool = False) -> Any:
    found = [one for one in info.context.books.values() if text in one["title"]]
    return [*found, AUTHOR, Typed("Magazine", id="m1", title="Weekly", issue=7)] if not select else []


@resolver("Query")
def hello(_: Any, info: Any, name: str) -> str:
    return f"hello {name}"


@resolver("Query")
def ping(_: Any, info: Any) -> str:
    return f"{info.operation.operation.value} pong"


@resolver("Query")
def import_(_: Any, info: Any, value: int | None = None) -> Any:
    return value


@resolver("Query")
def fails(_: Any, info: Any, kind: str) -> Any:
    if kind == "partly":
        return next(iter(info.context.books.values()))
    error = GraphQLError(
        "No such book.\u202e\x1b[31m" + "x" * 5000, extensions={"code": "NOT_FOUND", "stacktrace": ["/srv/secret.py"]}
    )
    raise error


@resolver("Book")
def addedAt(_: Any, info: Any) -> str:
    return "2026-01-02T03:04:05Z"


@resolver("Book")
def author__(one: Any, info: Any) -> Any:
    return AUTHOR if one["author"] else None


@resolver("Book")
def pages(_: Any, info: Any, unit: int) -> int:
    return 300 // unit


@resolver("Book")
def excerpt(_: Any, info: Any, words: int) -> str:
    return " ".join(["word"] * words)


@resolver("Book")
def broken(_: Any, info: Any) -> str:
    if info.path.prev.key == "fails":
        raise GraphQLError("This page is torn.")
    return "whole"


@resolver("Mutation")
def addBook(_: Any, info: Any, input: Any) -> Any:
    made = info.context.add(input["title"], input["genre"], input.get("author"))
    return {"book": made, "bookEdge": {"cursor": "1", "node": made}, "errors": []}


@resolver("Mutation")
def deleteBook(_: Any, info: Any, id: str) -> bool:
    return info.context.books.pop(id, None) is not None


RESOLVERS["Mutation"]["ping"] = ping


def executable() -> GraphQLSchema:
    schema = build_schema(SDL)
    for kind, resolvers in RESOLVERS.items():
        for name, function in resolvers.items():
            schema.type_map[kind].fields[name].resolve = function
    for abstract in ("Node", "Found"):
        schema.type_map[abstract].resolve_type = lambda value, *_: value.kind
    return schema


def application(library: Library) -> Starlette:
    schema = executable()

    async def answer(request: Request) -> Response:
        library.headers.append(dict(request.headers))
        if library.token and request.headers.get("authorization") != f"Bearer {library.token}":
            return JSONResponse({"message": "Bad credentials"}, library.refusal)
        asked = await request.json()
        library.asked.append(asked)
        query = asked["query"]
        if library.old and "isOneOf" in query:
            return JSONResponse({"errors": [{"message": "Cannot query field 'isOneOf' on type '__Type'."}]}, 400)
        if not library.introspection and validate(schema, parse(query), [NoSchemaIntrospectionCustomRule]):
            return JSONResponse({"errors": [{"message": "GraphQL introspection is not allowed"}]}, 400)
        result = await graphql(schema, query, variable_values=asked.get("variables"), context_value=library)
        return JSONResponse(
            result.formatted, 400 if result.data is None and result.errors and not result.errors[0].path else 200
        )

    async def plain(request: Request) -> Response:
        return PlainTextResponse("<h1>It works</h1>")

    async def down(request: Request) -> Response:
        return PlainTextResponse("try later", 503)

    routes = [("/graphql", answer), ("/plain", plain), ("/down", down)]
    return Starlette(routes=[Route(path, handler, methods=["POST"]) for path, handler in routes])


@contextmanager
def serving(library: Library) -> Iterator[Library]:
    """The library at `library.url` while the block runs."""
    server = uvicorn.Server(uvicorn.Config(application(library), port=0, ws="none", lifespan="off", log_level="error"))
    sockets = [server.config.bind_socket()]
    sockets[0].listen()  # from now on, a client that comes before the thread has started waits
    library.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets)))
    thread.start()
    try:
        yield library
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    with serving(Library()) as served:
        served.fill(3)
        print(served.url, flush=True)
        sys.stdin.read()
