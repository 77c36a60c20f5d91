"""Paging: every way to the next page, how pages end, and forged cursors."""

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from gloveport.errors import ToolError
from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.openapi.call.paging import CursorSealer, NextPage
from gloveport.sources.openapi.operation import MediaContent, Operation, Paging, Parameter, RequestBody
from gloveport.sources.openapi.source import OpenApiSource
from gloveport.types import Page
from tests.sources.openapi.support import Kit, Seen, answer, tool_of


def listing(paging: Paging | None, *names: str, **changes: Any) -> Operation:
    parameters = tuple(Parameter(name, name, "query") for name in names)
    return Operation("GET", "/items", parameters=parameters, paging=paging, **changes)


def asked(seen: Seen) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(seen.query).items()}


def said(value: Any, **headers: str) -> bytes:
    return answer(orjson.dumps(value), **headers)


async def whole_pages(source: OpenApiSource, args: dict[str, Any]) -> list[Page]:
    pages = [await source.page(source.tools()[0], args, None)]
    while pages[-1].next is not None:
        pages.append(await source.page(source.tools()[0], args, pages[-1].next))
    return pages


async def all_pages(source: OpenApiSource, args: dict[str, Any] | None = None, most: int = 20) -> list[Any]:
    pages, cursor = [], None
    for _ in range(most):
        page = await source.page(tool_of(source), dict(args or {}), cursor)
        pages.append(page.value)
        cursor = page.next
        if cursor is None:
            return pages
    raise AssertionError("the pages never end")


@pytest.mark.integration
async def test_link_headers_are_followed_to_the_last(kit: Kit) -> None:
    def reply(seen: Seen) -> bytes:
        page = int(asked(seen).get("page", 1))
        links = [f'<{kit.server.url}/other/items?page={page - 1}>; rel="prev"'] if page > 1 else []
        links += [f'</other/items?page={page + 1}>; title="a"; rel="last next"'] if page < 3 else []
        return said([page], link=", ".join(links))

    kit.server.reply = reply
    assert await all_pages(kit.source({"it": listing(Paging(number="page"), "page", "q")}), {"q": "x"}) == [[1], [2], [3]]
    assert [seen.target for seen in kit.server.seen] == ["/items?q=x", "/other/items?page=2", "/other/items?page=3"]


@pytest.mark.integration
async def test_links_in_the_answer_are_followed(kit: Kit) -> None:
    def reply(seen: Seen) -> bytes:
        skip = int(asked(seen).get("$skip", 0))
        return said(
            {"value": [skip], "@odata.nextLink": f"{kit.server.url}/items?$skip={skip + 1}"} if skip < 2 else {"value": []}
        )

    kit.server.reply = reply
    assert len(await all_pages(kit.source({"it": listing(None)}))) == 3
    kit.server.reply = lambda seen: said({"next": None if "2" in seen.query else "/items?page=2"})
    assert len(await all_pages(kit.source({"it": listing(Paging(cursor="page", at=("next",)), "page")}))) == 2


@pytest.mark.integration
async def test_a_cursor_is_taken_from_the_answer_and_given_back(kit: Kit) -> None:
    tokens = {"": "a b&c", "a b&c": 7, "7": None}
    kit.server.reply = lambda seen: said(
        {"items": [1], "meta": {"nextPageToken": tokens[asked(seen).get("pageToken", "")]}}
    )
    source = kit.source({"it": listing(Paging(cursor="pageToken", at=("meta", "nextPageToken")), "pageToken", "q")})
    assert len(await all_pages(source, {"q": "x"})) == 3
    assert [asked(seen) for seen in kit.server.seen] == [
        {"q": "x"},
        {"pageToken": "a b&c", "q": "x"},
        {"pageToken": "7", "q": "x"},
    ]


@pytest.mark.integration
async def test_the_last_id_of_a_page_leads_to_the_next_until_no_more_follow(kit: Kit) -> None:
    kit.server.reply = lambda seen: said({"data": [{"id": "b"}], "last_id": "b", "has_more": "after" not in seen.query})
    source = kit.source({"it": listing(Paging(cursor="after", at=("last_id",), items=("data",)), "after")})
    assert len(await all_pages(source)) == 2
    assert asked(kit.server.last) == {"after": "b"}


@pytest.mark.integration
async def test_a_cursor_may_be_the_id_of_the_last_item(kit: Kit) -> None:
    kit.server.reply = lambda seen: said({"data": [{"id": "a"}, {"id": "b"}], "has_more": "after" not in seen.query})
    source = kit.source({"it": listing(Paging(cursor="starting_after", at=("data", "-1", "id")), "starting_after")})
    assert len(await all_pages(source)) == 2
    assert asked(kit.server.last) == {"starting_after": "b"}


@pytest.mark.integration
async def test_a_cursor_of_a_search_goes_back_in_its_body(kit: Kit) -> None:
    kit.server.reply = lambda seen: said({"cursor": "" if b"next" in seen.body else "next"})
    body = RequestBody((MediaContent("application/json", "json"),))
    for operation, args in (
        (Operation("POST", "/items", body=body, paging=Paging(cursor="cursor", at=("cursor",))), {"q": 1}),
        (
            Operation(
                "POST", "/items", body=RequestBody(body.contents, "body"), paging=Paging(cursor="cursor", at=("cursor",))
            ),
            {"body": {"q": 1}},
        ),
        (
            Operation("POST", "/items", body=body, grouped=True, paging=Paging(cursor="cursor", at=("cursor",))),
            {"body": {"q": 1}},
        ),
    ):
        assert len(await all_pages(kit.source({"it": operation}), args)) == 2
        assert orjson.loads(kit.server.last.body) == {"q": 1, "cursor": "next"}


@pytest.mark.integration
async def test_page_numbers_count_until_an_empty_page(kit: Kit) -> None:
    kit.server.reply = lambda seen: said({"items": [page] if (page := int(asked(seen).get("page", 0))) < 3 else []})
    source = kit.source({"it": listing(Paging(number="page", first=0, items=("items",)), "page")})
    assert len(await all_pages(source)) == 4
    assert [asked(seen).get("page") for seen in kit.server.seen] == [None, "1", "2", "3"]
    kit.server.seen.clear()
    assert len(await all_pages(source, {"page": 2})) == 2


@pytest.mark.integration
async def test_offsets_count_items(kit: Kit) -> None:
    rows = list(range(7))
    kit.server.reply = lambda seen: said(rows[(start := int(asked(seen).get("offset", 0))) : start + 3])
    operation = listing(Paging(offset="offset"), "offset", grouped=True)
    source = kit.source({"it": operation})
    assert await all_pages(source, {"query": {}}) == [[0, 1, 2], [3, 4, 5], [6], []]
    assert [page.empty for page in await whole_pages(source, {"query": {}})] == [False, False, False, True]


@pytest.mark.integration
async def test_a_cursor_stands_for_the_arguments_of_its_request(kit: Kit) -> None:
    rows = list(range(7))
    kit.server.reply = lambda seen: said(rows[(start := int(asked(seen).get("offset", 0))) : start + 3])
    source = kit.source({"it": listing(Paging(offset="offset"), "offset", "q")})
    page = await source.page(source.tools()[0], {"q": "x"}, None)
    assert page.next is not None
    assert source.page_arguments(source.tools()[0], {"q": "x"}, page.next) == {"q": "x", "offset": 3}
    kit.server.reply = lambda seen: said([1], link='</items?page=2>; rel="next"')
    page = await source.page(source.tools()[0], {"q": "x"}, None)
    assert page.next is not None
    shown = source.page_arguments(source.tools()[0], {"q": "x"}, page.next)
    assert shown["q"] == "x" and shown["next"].endswith("/items?page=2")


@pytest.mark.integration
async def test_a_service_that_repeats_its_last_page_comes_to_an_end(kit: Kit) -> None:
    kit.server.reply = lambda seen: said({"n": 2, "list": {"items": [min(int(asked(seen).get("page", 1)), 2)]}})
    source = kit.source({"it": listing(Paging(number="page", items=("list", "items")), "page")})
    assert [page["list"]["items"] for page in await all_pages(source)] == [[1], [2], []]


@pytest.mark.integration
async def test_a_service_that_repeats_its_cursor_or_link_comes_to_an_end(kit: Kit) -> None:
    kit.server.reply = said({"next": "same", "items": [1]})
    assert len(await all_pages(kit.source({"it": listing(Paging(cursor="c", at=("next",)), "c")}))) == 2
    kit.server.reply = said([1], link=f'<{kit.server.url}/items?page=2>; rel="next"')
    assert len(await all_pages(kit.source({"it": listing(None)}))) == 2


@pytest.mark.integration
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, {"items": None}, {"items": "abc"}, {"items": {}}])
async def test_an_answer_of_another_shape_is_the_last_page(kit: Kit, value: Any) -> None:
    kit.server.reply = said(value)
    for paging in (
        Paging(number="p", items=("items",)),
        Paging(offset="p", items=("items",)),
        Paging(cursor="p", at=("a", "b")),
    ):
        assert await all_pages(kit.source({"it": listing(paging, "p")})) == [value]


@pytest.mark.integration
@pytest.mark.parametrize("found", [True, {"a": 1}, [1], 1.5, "x" * 10_000])
async def test_a_value_that_can_not_be_a_cursor_ends_the_pages(kit: Kit, found: Any) -> None:
    kit.server.reply = said({"next": found})
    assert len(await all_pages(kit.source({"it": listing(Paging(cursor="c", at=("next",)), "c")}))) == 1


@pytest.mark.integration
@pytest.mark.parametrize(
    "link",
    [
        "http://evil.example/items?page=2",
        "//evil.example/x",
        "/v10/items",
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "http://u:p@127.0.0.1/v1/x",
    ],
)
async def test_a_link_that_leads_out_of_the_service_is_not_followed(kit: Kit, link: str) -> None:
    kit.server.reply = said([1], link=f'<{link}>; rel="next"')
    source = kit.source({"it": listing(None)}, base_url=f"{kit.server.url}/v1")
    page = await source.page(tool_of(source), {}, None)
    assert page.value == [1] and page.next
    with pytest.raises(ToolError) as caught:
        await source.page(tool_of(source), {}, page.next)
    assert caught.value.code == "egress-denied"
    assert len(kit.server.seen) == 1


@pytest.mark.integration
async def test_a_cursor_that_a_program_wrote_is_refused(kit: Kit) -> None:
    kit.server.reply = said([1], link='</items?page=2>; rel="next"')
    source = kit.source({"it": listing(None), "other": listing(None)})
    good = (await source.page(tool_of(source), {}, None)).next
    assert good
    raw = base64.urlsafe_b64decode(good)
    forged = base64.urlsafe_b64encode(raw[:16] + raw[16:].replace(b"items", b"admin")).decode()
    plain = base64.urlsafe_b64encode(b'{"url":"http://127.0.0.1/admin"}').decode()
    for cursor in ("", "é", "A", "%%%", "null", forged, plain, good[:-4], good[:20], "x" * 100_000):
        with pytest.raises(ToolError) as caught:
            await source.page(tool_of(source), {}, cursor)
        assert caught.value.code == "bad-arguments"
    with pytest.raises(ToolError, match="not a cursor of"):
        await source.page(tool_of(source, "other"), {}, good)
    assert len(kit.server.seen) == 1


def test_cursors_outlive_the_process_and_their_key_is_private(tmp_path: Any) -> None:
    cursor = CursorSealer(tmp_path / "new").seal("a.b", NextPage(value=5))
    assert CursorSealer(tmp_path / "new").open("a.b", cursor) == NextPage(value=5)
    (key,) = (tmp_path / "new").iterdir()
    assert key.stat().st_mode & 0o777 == 0o600


def test_cursors_work_when_no_key_can_be_stored(tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")
    cursors = CursorSealer(tmp_path / "file" / "folder")
    assert cursors.open("a", cursors.seal("a", NextPage(url="x"))) == NextPage(url="x")
    with pytest.raises(ToolError):
        CursorSealer(tmp_path / "file" / "folder").open("a", cursors.seal("a", NextPage(url="x")))


@pytest.mark.integration
async def test_a_link_that_repeats_a_credential_is_followed_with_the_credential_once(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_KEY"] = "secret-token"
    kit.server.reply = lambda seen: said(
        [1], link="" if "page" in seen.query else f'</items?{seen.query}&page=2>; rel="next"'
    )
    source = kit.source(
        {"it": listing(None, "q", security=(("key",),))}, slots=(CredentialSlot("key", "query", "api_key"),)
    )
    assert len(await all_pages(source, {"q": "x"})) == 2
    assert [seen.query for seen in kit.server.seen] == ["q=x&api_key=secret-token", "q=x&page=2&api_key=secret-token"]


@pytest.mark.integration
async def test_credentials_go_along_to_every_page(kit: Kit) -> None:
    kit.environment["T"] = "secret-token"
    kit.server.reply = lambda seen: said([1], link="" if seen.query else '</items?page=2>; rel="next"')
    await all_pages(kit.source({"it": listing(None)}, credentials={"token": "env:T"}))
    assert [seen.header("authorization") for seen in kit.server.seen] == ["Bearer secret-token"] * 2
    assert urlsplit(kit.server.last.target).query == "page=2"
