"""`gloveport auth`: values are typed without echo or piped, never shown, and sent to one origin."""

import asyncio
import json
from pathlib import Path

import pytest

from gloveport.policy.credentials.vault import Vault
from gloveport.policy.egress import Egress, Request
from tests.policy.oauth_server import authorizing
from tests.policy.servers import LOCAL
from tests.surfaces.command import Finished, Terminal, gloveport

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("folder")]

CANARY = "canary-8Dv3Wq6Lz2N"
ORIGIN = "https://api.shop.test"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, folder: Path) -> Path:
    """The user's own settings, which need no trust."""
    file = tmp_path / "XDG_CONFIG_HOME" / "gloveport" / "gloveport.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[sources.shop]\ngraphql = "{ORIGIN}/graphql"\n')
    return file


def stored() -> list[dict[str, object]]:
    return gloveport("auth", "list", "--json").document["credentials"]


def shown(finished: Finished) -> str:
    return finished.out + finished.err


def test_a_piped_credential_is_stored_for_its_origin_and_never_shown() -> None:
    added = gloveport("auth", "add", "shop", "--expires", "2199-01-31", stdin=f"{CANARY}\n")
    assert (added.code, ORIGIN in added.err, CANARY in shown(added)) == (0, True, False)
    (row,) = stored()
    assert (row["name"], row["kind"], row["origins"], row["state"]) == ("shop.token", "secret", [ORIGIN], "ready")
    listed = gloveport("auth", "list")
    assert "expires in" in listed.out and CANARY not in shown(listed)
    assert "shop.token is there" in gloveport("auth", "test", "shop").err
    found = Vault().read("shop.token")
    assert found and found[1] == {"secret": CANARY}
    assert CANARY.encode() not in Vault().path.read_bytes()
    assert gloveport("auth", "remove", "shop").code == 0
    assert stored() == []


def test_a_typed_credential_is_not_echoed() -> None:
    terminal = Terminal("auth", "add", "shop")
    try:
        before = terminal.until(r"shop\.token \(not shown\): ")
        terminal.press(f"{CANARY}\r".encode())
        code, after = terminal.rest()
    finally:
        terminal.close()
    assert (code, CANARY in before + after) == (0, False)
    found = Vault().read("shop.token")
    assert found and found[1] == {"secret": CANARY}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "no credential was given"),
        (b" \n", "no credential was given"),
        (b"canary\r\nX-Evil: 1", "a line break or a control character"),
        (b"canary\x00", "a line break or a control character"),
        (b"canary\xff", "a line break or a control character"),
        (b"x" * 70_000, "at most 65,536 bytes"),
    ],
)
def test_a_value_that_can_not_be_sent_is_refused_and_not_shown(value: bytes, problem: str) -> None:
    refused = gloveport("auth", "add", "shop", stdin=value)
    assert (refused.code, problem in refused.err, "canary" in shown(refused)) == (2, True, False)
    assert stored() == []


def test_wrong_names_and_dates_are_explained() -> None:
    assert "did you mean `shop`?" in gloveport("auth", "add", "shp", stdin="x").err
    assert "no credential `other` is stored" in gloveport("auth", "remove", "other").err
    assert "--expires takes a date" in gloveport("auth", "add", "shop", "--expires", "soon", stdin="x").err
    assert "is in the past" in gloveport("auth", "add", "shop", "--expires", "2020-01-31", stdin="x").err
    assert gloveport("auth", "add", "shop.../x", stdin="x").code == 2
    assert gloveport("auth", "add", "shop", "--origin", "javascript:x", stdin="x").code == 2


def test_a_slot_that_the_source_does_not_have_is_refused_with_those_that_it_has() -> None:
    refused = gloveport("auth", "add", "shop.bearer", stdin="x")
    assert refused.code == 2
    assert "the source shop has no credential slot `bearer`" in refused.err
    assert "it has `shop.token`" in refused.err
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Bar", "version": "1"},
        "servers": [{"url": "https://bar.test"}],
        "components": {"securitySchemes": {"barKey": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        "security": [{"barKey": []}],
        "paths": {"/drinks": {"get": {"operationId": "drinks"}}},
    }
    Path("bar.json").write_text(json.dumps(document))
    Path("bar.toml").write_text('[sources.bar]\nopenapi = "bar.json"\nbase_url = "https://bar.test"\n')
    trusted = gloveport("tools", "trust", "bar", "--yes", "--config", "bar.toml")
    assert trusted.code == 0, trusted.err
    refused = gloveport("auth", "add", "bar.barkey", "--config", "bar.toml", stdin="x")
    assert (refused.code, "did you mean `barKey`?" in refused.err) == (2, True), refused.err
    assert stored() == []
    added = gloveport("auth", "add", "bar.barKey", "--config", "bar.toml", stdin="x")
    assert (added.code, stored()[0]["name"]) == (0, "bar.barKey"), added.err


def test_a_missing_credential_ends_with_4_and_the_command_that_adds_it() -> None:
    missing = gloveport("auth", "test", "shop")
    assert missing.code == 4
    assert "auth-required" in missing.err and "gloveport auth add shop" in missing.err
    assert gloveport("auth", "test", "shop", "--json").document["error"]["code"] == "auth-required"


def test_the_command_that_adds_a_credential_names_the_settings_that_were_given() -> None:
    Path("other.toml").write_text('[sources.cafe]\ngraphql = "https://cafe.test/graphql"\n')
    missing = gloveport("auth", "test", "cafe", "--config", "other.toml")
    assert "`gloveport auth add cafe --config other.toml`" in missing.err
    assert "give --config FILE" in gloveport("auth", "add", "cafe", stdin="x").err


def test_a_source_of_a_project_gets_no_stored_credential_before_it_is_trusted() -> None:
    assert gloveport("auth", "add", "shop", stdin=CANARY).code == 0
    Path("gloveport.toml").write_text('[sources.shop]\ngraphql = "https://evil.test/graphql"\n')
    assert "has other settings" in (refused := gloveport("auth", "test", "shop").err) or "not trusted" in refused
    assert gloveport("tools", "trust", "shop", "--yes").code == 0
    denied = gloveport("auth", "test", "shop")
    assert (denied.code, f"is for {ORIGIN}, not for https://evil.test" in denied.err) == (3, True)


async def signed_in(*args: str) -> tuple[str, str]:
    """Sign in as a person at a terminal does; return what was asked, and the link."""
    terminal = await asyncio.to_thread(Terminal, "auth", "login", *args, "--no-browser")
    try:
        question = await asyncio.to_thread(terminal.until, r"Go on\? \[y/N\] ")
        terminal.press(b"y\r")
        text = await asyncio.to_thread(terminal.until, r"sign in: http\S+\s")
        egress = Egress()
        page = await egress.send(Request("GET", text.split("sign in: ")[1].strip()), LOCAL)
        await egress.close()
        assert page.status == 200 and b"You are signed in" in page.body
        code, rest = await asyncio.to_thread(terminal.rest)
    finally:
        terminal.close()
    assert code == 0 and "canary" not in question + text + rest, rest
    return " ".join(question.split()), text


async def test_a_source_is_added_before_anybody_has_signed_in_to_it() -> None:
    async with authorizing() as server:
        added = await asyncio.to_thread(gloveport, "add", f"{server.origin}/mcp", "--name", "it", "--private", "--yes")
    assert (added.code, "next: gloveport auth login it" in added.err) == (0, True), added.err
    assert "its tools are known after you have signed in" in added.err
    assert "reads data of yours" not in added.err  # with an account, its tools are private anyway
    assert "[sources.it]" in await asyncio.to_thread(Path("gloveport.toml").read_text)


async def test_a_person_signs_in_and_out_and_a_run_without_it_ends_with_4(settings: Path) -> None:
    async with authorizing() as server:
        await asyncio.to_thread(settings.write_text, f'[sources.shop]\nmcp = "{server.origin}/mcp"\nallow_private = true\n')
        run = await asyncio.to_thread(gloveport, "run", "-e", "return await tools.shop.x()")
        assert run.code == 4, run.err
        assert "auth-required" in run.err and "gloveport auth login shop" in run.err
        unasked = await asyncio.to_thread(gloveport, "auth", "login", "shop")
        assert (unasked.code, server.origin in unasked.err, server.requests) == (2, True, [])
        server.metadata = {"authorization_endpoint": "https://bank.test/authorize"}
        mixed = await asyncio.to_thread(gloveport, "auth", "login", "shop")
        assert "shows the page of https://bank.test; tokens come from" in mixed.err
        server.metadata = {"code_challenge_methods_supported": None}
        unproven = await asyncio.to_thread(gloveport, "auth", "login", "shop", "--yes", "--no-browser")
        assert (unproven.code, "does not state that it supports PKCE" in unproven.err) == (2, True), unproven.err
        server.metadata = {}
        secret = ("--client-id", "x", "--client-secret", "--yes")
        given = await asyncio.to_thread(gloveport, "auth", "login", "shop", *secret, stdin="canary")
        assert (given.code, "needs --issuer" in given.err, server.requests) == (2, True, [])
        question, _ = await signed_in("shop")
        assert f"signs in at {server.origin}" in question
        listed = await asyncio.to_thread(gloveport, "auth", "list", "--json")
        assert json.loads(listed.out)["credentials"][0]["issuer"] == server.origin and "canary" not in listed.out
        terminal = await asyncio.to_thread(
            Terminal, "auth", "login", "shop", "--no-browser", "--yes", "--more-scope", "write"
        )
        try:
            assert "&scope=read+write&" in await asyncio.to_thread(terminal.until, r"sign in: http\S+\s")
        finally:
            terminal.close()
        out = await asyncio.to_thread(gloveport, "auth", "logout", "shop", "--json")
        assert out.document == {"ok": True, "removed": "shop.token", "revoked": True}
        assert (server.access, server.refresh) == (set(), set())


def definition(origin: str, page: str, token: str) -> str:
    """A definition that names an authorization server, which may be anybody's."""
    flow = {"authorizationUrl": page, "tokenUrl": token, "scopes": {"everything": "All of it"}}
    return defined(origin, {"type": "oauth2", "flows": {"authorizationCode": flow}})


def defined(origin: str, scheme: dict[str, object]) -> str:
    """A definition with one security scheme."""
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "Shop", "version": "1"},
            "servers": [{"url": origin}],
            "components": {"securitySchemes": {"login": scheme}},
            "security": [{"login": []}],
            "paths": {"/mcp": {"get": {"operationId": "hello", "responses": {"200": {"description": "Hello"}}}}},
        }
    )


async def test_a_person_confirms_the_authorization_server_that_only_a_definition_names(settings: Path) -> None:
    async with authorizing() as server:
        server.described = server.challenge = False
        file = settings.with_name("shop.json")
        source = f'[sources.shop]\nopenapi = "{file}"\nallow_private = true\n'
        await asyncio.to_thread(settings.write_text, source)
        page, token = f"{server.origin}/authorize", f"{server.origin}/token"
        await asyncio.to_thread(file.write_text, definition(server.origin, "http://evil.test/authorize", token))
        refused = await asyncio.to_thread(gloveport, "auth", "login", "shop", "--client-id", "me")
        assert (refused.code, "is not an https URL" in refused.err) == (4, True), refused.err
        await asyncio.to_thread(file.write_text, definition(server.origin, page, token))
        unasked = await asyncio.to_thread(gloveport, "auth", "login", "shop", "--client-id", "me", "--yes")
        assert (unasked.code, "nobody can answer" in unasked.err, server.requests) == (2, True, []), unasked.err
        question, text = await signed_in("shop", "--client-id", "me", "--yes")
        assert f"the definition of shop alone names the page {page}, and tokens from {token}." in question
        assert "everything" not in text  # a definition does not choose what an account may do
        called = await asyncio.to_thread(gloveport, "tools", "call", "shop.mcp.hello")
        assert (called.code, "•••" in called.out, "canary" in shown(called)) == (0, True, False), called.err


@pytest.mark.parametrize("named", ["by relative URLs", "as an issuer"])
async def test_a_definition_names_its_authorization_server(settings: Path, named: str) -> None:
    async with authorizing() as server, authorizing() as other:
        server.challenge = other.described = other.challenge = False
        other.access = server.access
        if named == "as an issuer":
            url = f"{server.origin}/.well-known/openid-configuration"
            text = defined(other.origin, {"type": "openIdConnect", "openIdConnectUrl": url})
            service = other
        else:
            server.described = False
            text = definition("/", "authorize", "token")  # as FastAPI writes them
            service = server
        file = settings.with_name("shop.json")
        source = f'[sources.shop]\nopenapi = "{file}"\nbase_url = "{service.origin}"\nallow_private = true\n'
        await asyncio.to_thread(settings.write_text, source)
        await asyncio.to_thread(file.write_text, text)
        unasked = await asyncio.to_thread(gloveport, "auth", "login", "shop", "--client-id", "me", "--yes")
        assert (unasked.code, "nobody can answer" in unasked.err, server.requests) == (2, True, []), unasked.err
        question, link = await signed_in("shop", "--client-id", "me")
        assert f"the page {server.origin}/authorize, and tokens from {server.origin}/token." in question
        assert "resource=" not in link  # nobody has said that the server knows the service
        called = await asyncio.to_thread(gloveport, "tools", "call", "shop.mcp.hello")
        assert (called.code, "•••" in called.out, "canary" in shown(called)) == (0, True, False), called.err
