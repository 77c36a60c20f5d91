"""Calls against a real GraphQL server: values come back, state changes, errors are errors."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gloveport.errors import ToolError
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.sources.context import SourceContext
from gloveport.sources.graphql.opening import open_graphql
from gloveport.sources.graphql.source import GraphQLSource
from tests.policy.servers import ok, serving
from tests.sources.graphql.conftest import call, settings, tool
from tests.sources.graphql.server import SDL, Library
from tests.sources.in_process_tasks import InProcessTasks

pytestmark = pytest.mark.integration


async def test_a_query_gives_the_root_fields_value_with_leaves_and_shallow_objects(
    source: GraphQLSource, library: Library
) -> None:
    library.add("Emma", "NOVEL", "a1")
    book = await call(source, "book", id="b1")
    assert book == {
        "id": "b1",
        "title": "Emma",
        "genre": "NOVEL",
        "addedAt": "2026-01-02T03:04:05Z",
        "pages": 300,
        "matrix": None,
        "broken": "whole",
        "author": {"id": "a1", "name": "Ada", "born": 1815},
    }


async def test_a_mutation_really_changes_state(source: GraphQLSource, library: Library) -> None:
    added = await call(source, "addBook", input={"title": "Odes", "genre": "POETRY", "author": "a1"})
    assert added["book"]["title"] == "Odes"
    assert added["bookEdge"]["node"]["id"] == "b1"
    assert library.books["b1"]["genre"] == "POETRY"
    assert await call(source, "deleteBook", id="b1") is True
    assert library.books == {}
    assert await call(source, "book", id="b1") is None


async def test_arguments_are_sent_as_typed_variables_and_only_those_given(source: GraphQLSource, library: Library) -> None:
    hostile = '") { __schema { types { name } } } #'
    assert await call(source, "hello", name=hostile) == f"hello {hostile}"
    assert await call(source, "hello") == "hello world"
    first, second = library.asked[-2:]
    assert first == {"query": "query hello($name: String) { hello(name: $name) }", "variables": {"name": hostile}}
    assert second == {"query": "query hello { hello }", "variables": {}}


async def test_dates_and_bytes_are_sent_as_text(source: GraphQLSource, library: Library) -> None:
    await call(source, "addBook", input={"title": b"\x00\x01", "addedAt": datetime(2026, 1, 2, tzinfo=UTC)})
    assert library.asked[-1]["variables"] == {"input": {"title": "AAE=", "addedAt": "2026-01-02T00:00:00Z"}}


async def test_a_choice_of_fields_replaces_the_default(source: GraphQLSource, library: Library) -> None:
    library.add("Emma", "NOVEL", "a1")
    wanted = {"title": "Emma", "words": "word word", "author": {"name": "Ada"}}
    for select in (
        "title words: excerpt(words: 2) author { name }",
        ["title", "words: excerpt(words: 2)", {"author": ["name"]}],
        {"title": True, "words: excerpt(words: 2)": True, "author": {"name": True}},
    ):
        assert await call(source, "book", id="b1", select=select) == wanted
    assert await call(source, "book", id="b1", select="author") == {"author": {"id": "a1", "name": "Ada", "born": 1815}}


async def test_a_union_gives_each_of_its_types_and_says_which(source: GraphQLSource, library: Library) -> None:
    library.add("Emma", "NOVEL", None)
    book, author, magazine = await call(source, "search", text="Em")
    assert (book["__typename"], book["title"]) == ("Book", "Emma")
    assert author == {"__typename": "Author", "id": "a1", "name": "Ada", "born": 1815}
    assert magazine == {"__typename": "Magazine", "id": "m1", "issue": 7}
    chosen = await call(source, "search", text="Em", select_="... on Author { name }")
    assert chosen == [{}, {"name": "Ada"}, {}]


async def test_errors_without_data_are_an_error_trimmed_to_message_path_and_code(source: GraphQLSource) -> None:
    with pytest.raises(ToolError) as caught:
        await call(source, "fails", kind="wholly")
    error = caught.value
    assert error.code == "graphql-error"
    assert error.message.startswith("fails: No such book.[31mxxx")
    assert len(error.message) < 600
    assert error.data["data"] is None
    assert [sorted(row) for row in error.data["errors"]] == [["code", "message", "path"]]
    assert "secret.py" not in repr(error.data)


async def test_errors_with_partial_data_are_an_error_that_has_the_data(source: GraphQLSource, library: Library) -> None:
    library.add("Emma", "NOVEL", None)
    with pytest.raises(ToolError, match=r"^fails\.broken: This page is torn\.\n") as caught:
        await call(source, "fails", kind="partly")
    error = caught.value
    assert error.data["errors"] == [{"message": "This page is torn.", "path": ["fails", "broken"]}]
    assert error.data["data"]["title"] == "Emma"
    assert error.data["data"]["broken"] is None
    assert error.hint is not None and "select" in error.hint
    assert (await call(source, "fails", kind="partly", select="title")) == {"title": "Emma"}


async def test_many_errors_are_counted_and_cut(source: GraphQLSource, library: Library) -> None:
    library.fill(1)
    select = " ".join(f"b{number}: broken" for number in range(20))
    with pytest.raises(ToolError, match="and 17 more") as caught:
        await call(source, "fails", kind="partly", select=select)
    assert len(caught.value.data["errors"]) == 10


async def test_secrets_among_the_leaves_come_only_when_asked_for(source: GraphQLSource) -> None:
    assert "apiToken" not in await call(source, "author", id="a1")
    assert await call(source, "author", id="a1", select="apiToken") == {"apiToken": "canary-of-ada"}


async def test_the_credential_and_fixed_headers_go_with_every_request(library: Library, outside: SourceContext) -> None:
    library.token = "canary-token"
    source = await open_graphql(settings(f"{library.url}/graphql", headers={"X-Tenant": "t1"}), outside)
    assert await call(source, "hello") == "hello world"
    assert {header["x-tenant"] for header in library.headers} == {"t1"}
    assert "canary-token" not in repr(vars(source))


async def test_a_slot_of_another_name_is_the_header_that_carries_it(library: Library, tmp_path: Any) -> None:
    from gloveport.policy.egress import Egress

    credentials = EnvironmentCredentials({("lib", "X-Admin-Secret"): "env:ADMIN"}, {"ADMIN": "canary-admin"})
    egress = Egress()
    config = settings(f"{library.url}/graphql", credentials={"X-Admin-Secret": "env:ADMIN"})
    source = await open_graphql(config, SourceContext(egress, credentials, tmp_path, InProcessTasks()))
    await call(source, "hello")
    assert library.headers[-1]["x-admin-secret"] == "canary-admin"
    assert "authorization" not in library.headers[-1]
    assert [slot.name for slot in source.source_info().slots] == ["token", "X-Admin-Secret"]
    await egress.close()


async def test_a_refused_credential_names_its_variable(source: GraphQLSource, library: Library) -> None:
    library.token = "another"
    with pytest.raises(ToolError) as caught:
        await call(source, "hello")
    assert (caught.value.code, caught.value.status) == ("auth-required", 401)
    assert "GLOVEPORT_LIB_TOKEN" in (caught.value.setting or "")


async def test_a_missing_credential_names_its_variable(library: Library, outside: SourceContext, tmp_path: Any) -> None:
    library.token = "needed"
    schema = tmp_path / "library.graphql"
    schema.write_text(SDL)
    config = settings(schema, base_url=f"{library.url}/graphql", credentials={"token": "env:LIBRARY_CARD"})
    nothing = EnvironmentCredentials({("lib", "token"): "env:LIBRARY_CARD"}, {})
    source = await open_graphql(config, SourceContext(outside.egress, nothing, tmp_path, outside.tasks))
    with pytest.raises(ToolError) as caught:
        await call(source, "hello")
    assert caught.value.code == "auth-required"
    assert "LIBRARY_CARD" in (caught.value.setting or "")


@pytest.mark.parametrize(
    ("path", "status", "retryable"), [("plain", 200, False), ("down", 503, True), ("absent", 404, False)]
)
async def test_what_is_not_graphql_is_an_http_error(
    library: Library, outside: SourceContext, tmp_path: Any, path: str, status: int, retryable: bool
) -> None:
    schema = tmp_path / "library.graphql"
    schema.write_text(SDL)
    source = await open_graphql(settings(schema, base_url=f"{library.url}/{path}"), outside)
    with pytest.raises(ToolError) as caught:
        await call(source, "hello")
    assert (caught.value.code, caught.value.status, caught.value.retryable) == ("http-error", status, retryable)


async def test_names_that_programs_cannot_write_are_changed(source: GraphQLSource) -> None:
    assert await call(source, "import_", value=4) == 4
    assert await call(source, "query_ping") == "query pong"
    assert await call(source, "mutation_ping") == "mutation pong"


async def test_a_connection_is_paged_lazily(source: GraphQLSource, library: Library) -> None:
    library.fill(7)
    books = tool(source, "books")
    assert books.pages
    before = len(library.asked)
    page = await source.page(books, {"first": 3}, None)
    assert len(library.asked) == before + 1
    titles = [one["title"] for one in page.value["nodes"]]
    assert page.value["pageInfo"] == {"hasNextPage": True, "endCursor": "3"}
    assert "gloveport_page" not in page.value
    while page.next is not None:
        page = await source.page(books, {"first": 3}, page.next)
        titles += [one["title"] for one in page.value["nodes"]]
    assert titles == [f"Book {number}" for number in range(1, 8)]
    assert len(library.asked) == before + 3


async def test_pages_work_with_any_choice_of_fields_and_have_a_size_of_their_own(
    source: GraphQLSource, library: Library
) -> None:
    library.fill(60)
    page = await source.page(tool(source, "books"), {"select": "edges { node { id } }"}, None)
    assert sorted(page.value) == ["edges"]
    assert len(page.value["edges"]) == 50
    last = await source.page(tool(source, "books"), {"select": "edges { node { id } }"}, page.next)
    assert (len(last.value["edges"]), last.next) == (10, None)


async def test_pages_go_forward_only(source: GraphQLSource) -> None:
    with pytest.raises(ToolError, match="go forward"):
        await source.page(tool(source, "books"), {"last": 3}, None)


async def test_a_page_that_leads_to_itself_is_the_last(source: GraphQLSource, library: Library) -> None:
    library.fill(1)
    page = await source.page(tool(source, "books"), {"first": 0}, "0")
    assert page.value["pageInfo"] == {"hasNextPage": True, "endCursor": "0"}
    assert page.next is None


async def test_arguments_that_json_cannot_say_are_refused(source: GraphQLSource) -> None:
    with pytest.raises(ToolError) as caught:
        await call(source, "import_", value=float("nan"))
    assert caught.value.code == "bad-arguments"


@pytest.mark.parametrize("field", ["data", "errors"])
async def test_an_answer_of_more_lists_than_anyone_means_is_not_built(
    outside: SourceContext, tmp_path: Path, field: str
) -> None:
    (tmp_path / "schema.graphql").write_text("scalar Any type Query { any: Any }")
    lists = b"[" + b"[]," * 600_000 + b"[]]"
    answer = b'{"data": {"any": ' + lists + b"}}" if field == "data" else b'{"errors": ' + lists + b"}"
    async with serving(ok(answer, "Content-Type: application/json")) as server:
        config = settings(tmp_path / "schema.graphql", base_url=server.origin)
        with pytest.raises(ToolError, match="too much JSON: it holds more than 100,000 lists") as caught:
            await call(await open_graphql(config, outside), "any")
    assert caught.value.code == "reply-too-large"
