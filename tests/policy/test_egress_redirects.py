"""Each redirect is judged like a first request, and nothing secret leaves the origin it was for."""

import pytest

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Reach, Reply, Request
from tests.policy.servers import LOCAL, Dialled, ok, redirect, send, serving

pytestmark = pytest.mark.integration

STATUSES = ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
CANARY = "canary-7Yq2Lw9Zk4T"


def key(origin: str, *more: str) -> list[Attachment]:
    return [
        Attachment("header", "X-Key", Secret(CANARY, "shop.key"), frozenset({origin, *more})),
        Attachment("query", "key", Secret(CANARY, "shop.key"), frozenset({origin, *more})),
        Attachment("cookie", "key", Secret(CANARY, "shop.key"), frozenset({origin, *more})),
    ]


async def get(url: str, reach: Reach = LOCAL, *, method: str = "GET", **more: object) -> Reply:
    return await send(Request(method, url, **more), reach)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_of_a_read_is_followed(status: str) -> None:
    async with serving({"/a": redirect("/b/c?d", status), "/b/c": redirect("../e", status), "/e": ok(b"there")}) as server:
        reply = await get(f"{server.origin}/a")
        assert (reply.status, reply.body, reply.url) == (200, b"there", f"{server.origin}/e")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_a_redirect_of_anything_else_is_the_reply(status: str, method: str) -> None:
    async with serving({"/a": redirect("/b", status), "/b": ok()}) as server:
        reply = await get(f"{server.origin}/a", method=method, body=b"x")
        assert (reply.status, reply.headers["location"]) == (int(status[:3]), "/b")
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["200 OK", "300 Multiple Choices", "304 Not Modified", "305 Use Proxy", "404 Not Found"])
async def test_other_statuses_with_a_location_are_no_redirects(status: str) -> None:
    answer = f"HTTP/1.1 {status}\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving({"/a": answer, "/b": ok()}) as server:
        assert (await get(f"{server.origin}/a")).status == int(status[:3])


async def test_a_redirect_without_a_location_is_the_reply() -> None:
    async with serving(ok(b"", status="302 Found")) as server:
        assert (await get(server.origin)).status == 302


async def test_a_chain_ends_at_its_limit() -> None:
    async with serving({f"/{n}": redirect(f"/{n + 1}") for n in range(9)} | {"/5": ok(b"five")}) as server:
        assert (await get(f"{server.origin}/0")).body == b"five"
        server.answers["/5"] = redirect("/6")  # type: ignore[index]
        with pytest.raises(ToolError, match="more than 5 times") as refusal:
            await get(f"{server.origin}/0")
        assert refusal.value.code == "egress-denied"
        with pytest.raises(ToolError, match="more than 0 times"):
            await get(f"{server.origin}/0", Reach(allow_private=True, max_redirects=0))
        server.answers = redirect("/0")
        with pytest.raises(ToolError, match="more than 5 times"):
            await get(f"{server.origin}/0")


PRIVATE = [
    "http://127.0.0.1:1/",
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://2130706433/",
    "http://169.254.169.254/latest/",
    "//192.168.0.1/",
]


@pytest.mark.parametrize("location", PRIVATE)
async def test_a_public_service_can_not_redirect_inside(location: str) -> None:
    async with serving(redirect(location)) as server:
        dialled = Dialled(server.port)
        with pytest.raises(ToolError, match="may not be reached") as refusal:
            await send(Request("GET", "http://8.8.8.8/"), Reach(), connect_address=dialled)
    assert refusal.value.code == "egress-denied"
    assert dialled.addresses == ["8.8.8.8"]


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/", "http://metadata.google.internal/", "http://100.100.100.200/", "http://[fd00:ec2::254]/"],
)
async def test_metadata_is_not_reached_by_a_redirect_even_where_private_addresses_are_allowed(location: str) -> None:
    async with serving(redirect(location)) as server:
        with pytest.raises(ToolError, match="metadata"):
            await get(server.origin)


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://8.8.8.8/",
        "javascript:x",
        "http://a@8.8.8.8/",
        "/\\8.8.8.8",
        "http://8.8.8.8\\@x/",
        "/a b",
    ],
)
async def test_a_redirect_to_what_is_no_plain_url_is_refused(location: str) -> None:
    async with serving(redirect(location)) as server:
        with pytest.raises(ToolError, match="a URL was refused") as refusal:
            await get(server.origin)
    assert refusal.value.code == "egress-denied"


async def test_a_location_beyond_ascii_is_escaped() -> None:
    async with serving({"/": redirect("/ü"), "/%C3%BC": ok(b"umlaut")}) as server:
        assert (await get(server.origin)).body == b"umlaut"


@pytest.mark.parametrize("also_bound", [False, True])
async def test_secrets_and_a_callers_own_headers_stay_with_their_origin(also_bound: bool) -> None:
    async with (
        serving(ok(b"there")) as other,
        serving({"/a": redirect("/b"), "/b": redirect(f"{other.origin}/c")}) as server,
    ):
        mine = (
            ("Authorization", "mine"),
            ("X-Own", "mine"),
            ("Cookie", "mine=1"),
            ("Accept", "text/plain"),
            ("User-Agent", "me"),
        )
        secrets = key(server.origin, *([other.origin] if also_bound else []))
        reply = await send(Request("GET", f"{server.origin}/a", mine), LOCAL, secrets)
    assert reply.body == b"there"
    for request in server.requests:
        assert request.count(CANARY.encode()) == 3
        assert request.count(b"mine") == 3
    (left,) = other.requests
    assert CANARY.encode() not in left
    assert b"mine" not in left
    assert b"\r\nAccept: text/plain\r\n" in left
    assert b"\r\nUser-Agent: me\r\n" in left


async def test_secrets_do_not_come_back_after_a_detour() -> None:
    async with serving(ok()) as other, serving({"/a": ok(), "/b": ok(b"back")}) as server:
        server.answers["/a"] = redirect(other.origin)  # type: ignore[index]
        other.answers = redirect(f"{server.origin}/b")
        assert (await send(Request("GET", f"{server.origin}/a"), LOCAL, key(server.origin))).body == b"back"
    assert CANARY.encode() in server.requests[0]
    assert CANARY.encode() not in server.requests[1]


async def test_a_redirect_that_brings_the_secret_along_is_not_given_it_twice() -> None:
    async with serving({"/a": redirect(f"/b?key={CANARY}"), "/b": ok(b"there")}) as server:
        reply = await send(Request("GET", f"{server.origin}/a"), LOCAL, key(server.origin))
    assert server.requests[1].startswith(f"GET /b?key={CANARY} HTTP".encode())
    assert reply.url == f"{server.origin}/b?key=•••(shop.key)"


async def test_a_redirect_out_of_the_reach_is_refused() -> None:
    async with serving(ok()) as other, serving(redirect(other.origin)) as server:
        reach = Reach(frozenset({server.origin}), allow_private=True)
        with pytest.raises(ToolError, match="requests go to") as refusal:
            await get(server.origin, reach)
        assert refusal.value.code == "egress-denied"
        assert other.requests == []
        both = Reach(frozenset({server.origin, other.origin}), allow_private=True)
        assert (await get(server.origin, both)).status == 200


async def test_a_redirect_to_a_host_named_like_the_secret_does_not_show_it() -> None:
    secret = "canary-7yq2lw9zk4t"
    async with serving(redirect(f"http://{secret}.example.org/")) as server:
        attached = [Attachment("header", "X-Key", Secret(secret, "shop.key"), frozenset({server.origin}))]
        with pytest.raises(ToolError) as refusal:
            await send(
                Request("GET", server.origin), Reach(allow_private=True, origins=frozenset({server.origin})), attached
            )
    assert "http://•••(shop.key).example.org may not be reached" in refusal.value.message
    assert secret not in repr(refusal.value) + repr(vars(refusal.value))
