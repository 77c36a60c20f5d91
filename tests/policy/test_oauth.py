"""OAuth 2: every grant, one refresh for all, and the attacks on sign-ins (M7-M9)."""

import asyncio
import time
import webbrowser
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.responses import RedirectResponse, Response

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, renew_attachments
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.egress import Egress, Request
from gloveport.policy.oauth import grants as grants_module
from gloveport.policy.oauth.accounts import account_value
from gloveport.policy.oauth.discovery import AuthorizationServer, NoServerMetadata, discover, mcp_probe, safe_url
from gloveport.policy.oauth.grants import GrantError, Grants, OAuthClient, PendingSignIn, Tokens
from gloveport.surfaces.cli.auth.login import open_in_browser
from gloveport.surfaces.sources.callback import CallbackServer
from tests.policy.oauth_server import OAuthServer, authorizing
from tests.policy.servers import LOCAL, send
from tests.policy.test_vault import key
from tests.sources.mcp.support import served

REDIRECT = "http://127.0.0.1:9/callback"
SERVER = AuthorizationServer("https://as.test", "https://as.test/t", "https://as.test/a", returns_issuer=True)


@pytest.fixture
async def server() -> AsyncIterator[OAuthServer]:
    async with authorizing() as running:
        yield running


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    own = Egress()
    yield own
    await own.close()


class Redirecting:
    """An application that redirects every request."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.requests += 1
            await RedirectResponse(self._target, 307)(scope, receive, send)


async def found(server: OAuthServer, egress: Egress, **more: Any) -> AuthorizationServer:
    return await discover(egress, f"{server.origin}/mcp", allow_private=True, **more)


async def signed_in(server: OAuthServer, egress: Egress, path: Path, *, expires: float | None = None) -> Vault:
    """Store an account as a sign-in would, with a token that the service takes."""
    made = server.tokens()
    tokens = Tokens(made["access_token"], made["refresh_token"], expires or time.time() + 3600)
    about = StoredCredential("it.token", "oauth", (server.origin,), time.time(), tokens.expires, issuer=server.origin)
    client = OAuthClient("registered")
    metadata = await found(server, egress)
    value = account_value(metadata, client, tokens, grant="authorization_code", scope="", allow_private=True)
    vault = Vault(path / "credentials.json", key(1))
    vault.write(about, value)
    return vault


def credentials(vault: Vault, egress: Egress) -> ConfiguredCredentials:
    return ConfiguredCredentials({}, egress=egress, vault=vault, environment={})


async def call(server: OAuthServer, own: ConfiguredCredentials) -> int:
    """Return the status of a call to the service, made as sources make it."""
    secret = await own.find("it", "token", server.origin)
    assert secret
    attached = (Attachment("header", "Authorization", secret, frozenset({server.origin}), "Bearer {}"),)
    reply = await send(Request("GET", f"{server.origin}/mcp"), LOCAL, attached, lambda old: renew_attachments(own, old))
    assert b"canary" not in reply.body
    return reply.status


@pytest.mark.integration
async def test_a_sign_in_discovers_registers_and_exchanges_its_code_once(server: OAuthServer, egress: Egress) -> None:
    metadata = await found(server, egress)
    assert (metadata.issuer, metadata.resource, metadata.scopes) == (server.origin, f"{server.origin}/mcp", ("read",))
    grants = Grants(egress, metadata, OAuthClient(""), allow_private=True)
    client = await grants.register(REDIRECT, "read")
    pending = PendingSignIn(metadata, client, REDIRECT, "read")
    asked = parse_qs(urlsplit(pending.url).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["resource"] == [f"{server.origin}/mcp"]
    assert pending.verifier not in pending.url
    server.codes["the-code"] = {name: values[0] for name, values in asked.items()}
    answer = f"code=the-code&state={asked['state'][0]}&iss={server.origin}"
    tokens = await grants.by_code(pending.code_from(answer), pending)
    assert tokens.access in server.access and tokens.refresh in server.refresh and "canary" not in repr(tokens)
    with pytest.raises(GrantError) as caught:
        await grants.by_code("the-code", pending)
    assert caught.value.reason == "invalid_grant" and "canary" not in str(vars(caught.value))


@pytest.mark.integration
async def test_the_refusal_of_an_mcp_server_names_its_metadata_and_scopes(server: OAuthServer, egress: Egress) -> None:
    server.gets, server.scope = False, "read:all $(id) `id` --yes write"
    server.metadata = {"scopes_supported": ["read", "offline_access"]}
    assert (await found(server, egress)).scopes == ("read",)  # a GET gets no refusal
    asked = await found(server, egress, probe=mcp_probe(f"{server.origin}/mcp"))
    assert asked.scopes == ("read:all", "write")  # a person gets them in a command
    assert asked.offline_access and asked.supports_pkce


@pytest.mark.integration
async def test_a_client_is_registered_as_native_with_a_method_that_the_server_takes(
    server: OAuthServer, egress: Egress
) -> None:
    server.metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"]}
    grants = Grants(egress, await found(server, egress), OAuthClient(""), allow_private=True)
    assert (await grants.register(REDIRECT, "")).auth_method == "client_secret_post"
    assert server.registered[0]["application_type"] == "native"


@pytest.mark.integration
async def test_a_token_that_expired_on_disk_is_refreshed_without_a_person(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    vault = await signed_in(server, egress, tmp_path, expires=time.time() - 3600)
    assert await call(server, credentials(vault, egress)) == 200
    assert server.refreshes == 1
    again = Vault(vault.path, key(1))  # as after a restart: the rotated token is on disk
    assert await call(server, credentials(again, egress)) == 200
    assert server.refreshes == 1


@pytest.mark.integration
async def test_fifty_parallel_calls_in_two_hosts_make_one_refresh(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    vault = await signed_in(server, egress, tmp_path, expires=time.time() - 1)
    hosts = [credentials(Vault(vault.path, key(1)), egress) for _ in range(2)]
    assert await asyncio.gather(*(call(server, hosts[number % 2]) for number in range(50))) == [200] * 50
    assert server.refreshes == 1


@pytest.mark.integration
async def test_a_refused_token_is_refreshed_before_anything_else(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    own = credentials(await signed_in(server, egress, tmp_path), egress)
    server.access.clear()  # the service forgot the token long before it expires
    assert await asyncio.gather(*(call(server, own) for _ in range(50))) == [200] * 50
    assert server.refreshes == 1


@pytest.mark.integration
async def test_a_caller_that_gives_up_does_not_lose_the_rotated_token(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    vault = await signed_in(server, egress, tmp_path, expires=time.time() - 1)
    own = credentials(vault, egress)
    task = asyncio.ensure_future(own.find("it", "token", server.origin))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await call(server, own) == 200
    assert server.refreshes <= 1


@pytest.mark.integration
async def test_revocation_ends_in_a_sign_in_that_is_remembered(server: OAuthServer, egress: Egress, tmp_path: Path) -> None:
    vault = await signed_in(server, egress, tmp_path)
    server.access.clear()
    server.refresh.clear()
    for attempt in range(2):
        with pytest.raises(ToolError) as caught:
            await call(server, credentials(Vault(vault.path, key(1)), egress))
        assert (caught.value.code, caught.value.setting) == ("auth-required", "run `gloveport auth login it`")
        assert "canary" not in repr(vars(caught.value))
        assert len(server.requests) == 1, attempt  # the second does not ask the server again
    assert [about.sign_in for about in vault.stored()] == [True]


@pytest.mark.integration
async def test_a_server_that_fails_for_a_while_does_not_sign_anybody_out(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    vault = await signed_in(server, egress, tmp_path, expires=time.time() - 1)
    server.broken = 503
    with pytest.raises(ToolError) as caught:
        await call(server, credentials(vault, egress))
    assert (caught.value.code, caught.value.retryable) == ("source-unreachable", True)
    server.broken = 0
    assert await call(server, credentials(vault, egress)) == 200


@pytest.mark.integration
async def test_a_client_signs_in_as_itself_and_with_a_device(server: OAuthServer, egress: Egress) -> None:
    metadata = await found(server, egress)
    robot = OAuthClient("robot", "canary-client-secret", "client_secret_basic")
    assert (await Grants(egress, metadata, robot, allow_private=True).by_client("read")).access in server.access
    assert "canary" not in repr(robot)
    with pytest.raises(GrantError, match="invalid_client"):
        await Grants(egress, metadata, replace(robot, secret="wrong"), allow_private=True).by_client("read")
    grants = Grants(egress, metadata, OAuthClient("tv"), allow_private=True)
    device = await grants.device_code("read")
    assert (device.user_code, device.url) == ("ABCD-EFGH", f"{server.origin}/type")
    with pytest.raises(GrantError) as caught:
        await grants.by_device(device)
    assert caught.value.reason == "authorization_pending"
    assert (await grants.by_device(device)).access in server.access


@pytest.mark.integration
@pytest.mark.parametrize("answer", [{"token_endpoint_auth_method": "private_key_jwt"}, {"client_secret": {"a": 1}}])
async def test_a_client_that_can_not_be_used_is_refused(
    server: OAuthServer, egress: Egress, answer: dict[str, object]
) -> None:
    server.registration = answer
    with pytest.raises(GrantError, match="a client of an unknown kind"):
        await Grants(egress, await found(server, egress), OAuthClient(""), allow_private=True).register(REDIRECT, "")
    robot = OAuthClient("robot", "canary-\N{SNOWMAN}", "client_secret_basic")
    with pytest.raises(GrantError, match="a character that can't be sent") as caught:
        await Grants(egress, SERVER, robot, allow_private=True).by_client("")
    assert "canary" not in repr(vars(caught.value)) and caught.value.__cause__ is None


@pytest.mark.integration
async def test_a_token_goes_to_its_service_and_a_refresh_token_to_its_server_alone(
    server: OAuthServer, egress: Egress, tmp_path: Path
) -> None:
    own = credentials(await signed_in(server, egress, tmp_path), egress)
    with pytest.raises(ToolError) as caught:
        await own.find("it", "token", "https://evil.test")
    assert caught.value.code == "egress-denied"
    elsewhere = replace(await found(server, egress), token_endpoint="https://as.test/token")
    assert elsewhere.origins == {"https://as.test", server.origin}
    redirecting = Redirecting("https://evil.test/token")
    async with served(redirecting) as url:
        thief = AuthorizationServer(url, f"{url}/token")
        with pytest.raises(GrantError):
            await Grants(egress, thief, OAuthClient("x"), allow_private=True).by_refresh("canary-refresh")
    assert redirecting.requests == 1  # a redirect of the token endpoint is not followed


@pytest.mark.integration
@pytest.mark.parametrize(
    ("metadata", "resource", "problem"),
    [
        ({"issuer": "https://other.test"}, {}, "are those of another issuer"),
        ({"issuer": None}, {}, "are those of another issuer"),
        ({"token_endpoint": "javascript:alert(1)"}, {}, "is not a plain https URL"),
        ({"token_endpoint": "http://tokens.test/t"}, {}, "is not an https URL"),
        ({"authorization_endpoint": "file:///etc/passwd"}, {}, "is not a plain https URL"),
        ({"code_challenge_methods_supported": ["plain"]}, {}, "does not support PKCE"),
        ({}, {"resource": "https://victim.test/mcp"}, "are for another resource"),
        ({}, {"resource": None}, "are for another resource"),
        ({}, {"authorization_servers": ["http://evil.test"]}, "is not an https URL"),
    ],
)
async def test_metadata_of_somebody_else_or_with_unsafe_urls_are_refused(
    server: OAuthServer, egress: Egress, metadata: dict[str, object], resource: dict[str, object], problem: str
) -> None:
    server.metadata, server.resource = metadata, resource
    with pytest.raises(ToolError, match=problem) as caught:
        await found(server, egress)
    assert caught.value.code == "auth-required"


@pytest.mark.integration
async def test_metadata_of_another_origin_are_not_asked_for(server: OAuthServer, egress: Egress) -> None:
    async with authorizing() as evil:
        server.challenge = f"{evil.origin}/.well-known/oauth-protected-resource/mcp"  # type: ignore[assignment]
        with pytest.raises(ToolError, match="may not be reached"):
            await found(server, egress)


@pytest.mark.integration
@pytest.mark.parametrize(
    "page", [RedirectResponse("https://a.test/login", 302), Response("<p>" * 100_000)], ids=["redirect", "large"]
)
async def test_a_page_at_every_path_is_no_metadata(egress: Egress, page: Response) -> None:
    async with served(page) as url:
        for probe in (None, mcp_probe(url)):
            with pytest.raises(NoServerMetadata, match="does not describe an authorization server"):
                await discover(egress, url, allow_private=True, probe=probe)


@pytest.mark.integration
@pytest.mark.parametrize("place", ["/token", "/register", "/.well-known/oauth-authorization-server"])
@pytest.mark.parametrize("body", [b"x" * 300_000, b"[" * 100_000, b"\xff{", b"[]", b'{"access_token": "\\ud800"}'], ids=len)
async def test_no_reply_of_an_authorization_server_is_more_than_an_error(
    server: OAuthServer, egress: Egress, place: str, body: bytes
) -> None:
    server.said[place] = body
    with pytest.raises(ToolError) as caught:
        metadata = await found(server, egress)
        grants = Grants(egress, metadata, OAuthClient(""), allow_private=True)
        await grants.register(REDIRECT, "")
        await grants.by_refresh("canary-refresh")
    assert caught.value.code in ("auth-required", "reply-too-large"), caught.value
    assert "canary" not in repr(vars(caught.value))


@pytest.mark.integration
async def test_a_server_that_takes_for_ever_is_left_at_the_deadline(
    server: OAuthServer, egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants_module, "TOKEN_SECONDS", 0.5)
    metadata = await found(server, egress)
    server.silent = "/token"
    with pytest.raises(ToolError, match="did not answer in full") as caught:
        await Grants(egress, metadata, OAuthClient("x"), allow_private=True).by_refresh("canary-refresh")
    assert (caught.value.code, caught.value.retryable) == ("source-timeout", False)


def answer_of(pending: PendingSignIn, **changes: str | None) -> str:
    state = parse_qs(urlsplit(pending.url).query)["state"][0]
    fields = {"code": "c", "state": state, "iss": "https://as.test", **changes}
    return "&".join(f"{name}={value}" for name, value in fields.items() if value is not None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "another"}, "invalid_state"),
        ({"state": None}, "invalid_state"),
        ({"state": ""}, "invalid_state"),
        ({"iss": "https://evil.test"}, "invalid_issuer"),
        ({"iss": None}, "invalid_issuer"),
        ({"code": None}, "invalid_response"),
        ({"error": "access_denied"}, "access_denied"),
        ({"error": "<script>"}, "invalid_response"),
    ],
)
def test_an_answer_that_is_not_for_this_sign_in_gives_no_code(changes: dict[str, str | None], reason: str) -> None:
    pending = PendingSignIn(SERVER, OAuthClient("x"), REDIRECT, "")
    with pytest.raises(GrantError) as caught:
        pending.code_from(answer_of(pending, **changes))
    assert caught.value.reason == reason


def test_a_state_is_used_once_and_a_parameter_stands_once() -> None:
    pending = PendingSignIn(SERVER, OAuthClient("x"), REDIRECT, "")
    with pytest.raises(GrantError, match="twice"):
        pending.code_from(answer_of(pending) + "&code=other")
    assert pending.code_from(answer_of(pending)) == "c"
    with pytest.raises(GrantError, match="not for this sign-in"):
        pending.code_from(answer_of(pending))
    assert len({PendingSignIn(SERVER, OAuthClient("x"), REDIRECT, "").verifier for _ in range(50)}) == 50


UNSAFE = [
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "-version",
    "--help",
    "http://evil.test/a",
    "ftp://a.test/",
    "https://a.test/$(id)",
    "x",
    "https://user@a.test/",
    "https://a.test\\@b.test/",
    "HTTPS://a.test/\x00",
    "vbscript:x",
    "ms-msdt:/id",
    "https:a.test",
    "//a.test/",
    "http://127.0.0.1.evil.test/",
    "http://localhost.evil.test/",
]


@pytest.mark.parametrize("url", [*UNSAFE, "", " https://a.test/", "https://a.test/ -x", "https://a.test/\n-x", None, 7])
def test_only_https_and_loopback_links_are_opened(url: object, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda link: opened.append(link) or True)
    if url == "https://a.test/$(id)":  # a plain URL: nothing hands it to a shell
        assert open_in_browser(url) and opened == [url]
        return
    with pytest.raises(ToolError):
        open_in_browser(url)  # type: ignore[arg-type]
    assert opened == []
    assert safe_url("http://127.0.0.1:8/x", "it") == "http://127.0.0.1:8/x"


async def request(callback: CallbackServer, first: str, host: str | None = None) -> str:
    own = urlsplit(callback.redirect_uri)
    reader, writer = await asyncio.open_connection("127.0.0.1", own.port)
    writer.write(f"{first} HTTP/1.1\r\nHost: {host or own.netloc}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer.split(" ")[1]


@pytest.mark.integration
async def test_the_callback_takes_the_right_answer_alone_and_once() -> None:
    async with CallbackServer() as callback:
        pending = PendingSignIn(SERVER, OAuthClient("x"), callback.redirect_uri, "")
        callback.check = pending.code_from
        good = answer_of(pending)
        for first, host in [
            (f"GET /callback?{answer_of(pending, state='fixed')}", None),
            (f"GET /other?{good}", None),
            (f"GET /callback/?{good}", None),
            (f"POST /callback?{good}", None),
            (f"GET /callback?{good}", "evil.test"),
            (f"GET /callback?{good}", "localhost:1"),
        ]:
            assert await request(callback, first, host) == "400", first
        assert await request(callback, f"GET /callback?{good}") == "200"
        assert await request(callback, f"GET /callback?{good}") == "400"
        assert await callback.code(5) == "c"
