"""A credential is found for every request, and renewed once when the service refuses it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import httpx2
import pytest

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, Secret, renew_attachments
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress, Request
from tests.policy.servers import LOCAL, Server, ok, redirect, send, serving

pytestmark = pytest.mark.integration

OLD, NEW = "canary-old-5Tz8Qw", "canary-new-9Bn3Xc"
Renew = Callable[[Sequence[Attachment]], Awaitable[Sequence[Attachment]]]


def bearer(text: str, server: Server) -> tuple[Attachment, ...]:
    return (Attachment("header", "Authorization", Secret(text, "shop.token"), frozenset({server.origin}), "Bearer {}"),)


async def wants_new(head: bytes, writer: asyncio.StreamWriter) -> None:
    refused = NEW.encode() not in head
    writer.write(ok(f"not {OLD} {NEW}".encode(), status="401 No") if refused else ok(f"{OLD} {NEW}".encode()))
    await writer.drain()


def renewing(server: Server, text: str = NEW) -> tuple[Renew, list[str]]:
    asked: list[str] = []

    async def renew(refused: Sequence[Attachment]) -> Sequence[Attachment]:
        asked.extend(attachment.secret.label for attachment in refused)
        return bearer(text, server)

    return renew, asked


async def test_a_refused_request_is_sent_once_more_with_the_new_secret_and_neither_comes_back() -> None:
    async with serving(wants_new) as server:
        renew, asked = renewing(server)
        reply = await send(Request("POST", f"{server.origin}/x", body=b"{}"), LOCAL, bearer(OLD, server), renew=renew)
    assert (reply.status, reply.body.decode()) == (200, "•••(shop.token) •••(shop.token)")
    assert asked == ["shop.token"]
    assert [request.endswith(b"\r\n\r\n{}") for request in server.requests] == [True, True]


async def test_a_second_refusal_is_the_reply() -> None:
    async with serving(ok(b"no", status="401 No")) as server:
        renew, asked = renewing(server)
        reply = await send(Request("GET", f"{server.origin}/x"), LOCAL, bearer(OLD, server), renew=renew)
    assert (reply.status, len(server.requests), asked) == (401, 2, ["shop.token"])


async def test_without_another_secret_the_refusal_is_the_reply() -> None:
    async def none(refused: Sequence[Attachment]) -> Sequence[Attachment]:
        return ()

    async with serving(ok(b"no", status="401 No")) as server:
        reply = await send(Request("GET", f"{server.origin}/x"), LOCAL, bearer(OLD, server), renew=none)
    assert (reply.status, len(server.requests)) == (401, 1)


async def test_another_origin_that_answers_401_after_a_redirect_gets_no_new_secret() -> None:
    async with serving(ok(b"no", status="401 No")) as thief, serving(redirect(f"{thief.origin}/y")) as server:
        renew, asked = renewing(thief)
        reply = await send(Request("GET", f"{server.origin}/x"), LOCAL, bearer(OLD, server), renew=renew)
    assert (reply.status, asked) == (401, [])
    assert b"canary" not in b"".join(thief.requests)


async def test_a_new_secret_for_another_origin_is_refused() -> None:
    async with serving(ok()) as other, serving(ok(b"no", status="401 No")) as server:
        renew, _ = renewing(other)
        with pytest.raises(ToolError, match=r"the credential shop\.token is for"):
            await send(Request("GET", f"{server.origin}/x"), LOCAL, bearer(OLD, server), renew=renew)
    assert NEW.encode() not in b"".join(server.requests)


async def test_a_transport_finds_the_secret_of_each_request_and_renews_it() -> None:
    environment = {"GLOVEPORT_SHOP_TOKEN": OLD}
    credentials = EnvironmentCredentials({}, environment)

    async with serving(wants_new) as server:

        async def attach() -> Sequence[Attachment]:
            secret = await credentials.find("shop", "token")
            assert secret
            found = bearer(secret.reveal(), server)
            environment["GLOVEPORT_SHOP_TOKEN"] = NEW
            return found

        async def renew(refused: Sequence[Attachment]) -> Sequence[Attachment]:
            return await renew_attachments(credentials, refused)

        egress = Egress()
        async with httpx2.AsyncClient(transport=egress.transport(LOCAL, attach, renew)) as client:
            first = await client.post(f"{server.origin}/x", content=b"one")
            second = await client.post(f"{server.origin}/x", content=b"two")
        await egress.close()
    assert [first.status_code, second.status_code, len(server.requests)] == [200, 200, 3]
    assert "canary" not in first.text and NEW not in second.text
