"""Sign in at `oidc-provider` with the real command line: every grant, refreshing, and revocation."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from gloveport import Gloveport
from gloveport.config import SourceConfig
from tests.oauth.support import CLIENT_ID, CLIENT_SECRET, Resource, User, authorization_server, browse, protected

REDIRECT = AnyUrl("http://127.0.0.1/c")
DOCUMENT = {
    "client_id": CLIENT_ID,
    "client_name": "Gloveport",
    "application_type": "native",
    "redirect_uris": ["http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[str]:
    async with authorization_server("oidc.mjs", CLIENT_DOCUMENT=json.dumps(DOCUMENT)) as found:
        yield found


@pytest.fixture
async def resource(issuer: str) -> AsyncIterator[Resource]:
    async with protected(issuer, f"{issuer}/token/introspection") as found:
        yield found


@pytest.fixture
def user(resource: Resource, tmp_path: Path) -> User:
    return User(tmp_path, f"{resource.origin}/mcp")


async def administrator(issuer: str, path: str) -> int:
    """Do something at the server; return how many refreshes there were."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.post(f"{issuer}/{path}")).json()["refreshes"]


async def test_a_person_signs_in_with_a_browser_and_out(user: User, resource: Resource) -> None:
    missing = await user.call()
    assert missing.code == 4, missing.text
    assert "auth-required" in missing.text and "run `gloveport auth login it`" in missing.text
    done, page = await user.sign_in()
    assert done.code == 0, done.text
    assert "You are signed in" in page
    called = await user.call()
    assert (called.code, called.text.strip().splitlines()[-1]) == (0, "5"), called.text
    assert resource.answers[-1]["aud"] == f"{resource.origin}/mcp"  # the token is for this service alone
    account = user.account
    assert (account["client"]["auth_method"], account["grant"]) == ("none", "authorization_code")
    assert "it.token  oauth" in (await user.gloveport("auth", "list")).text
    out = await user.gloveport("auth", "logout", "it")
    assert "its tokens are revoked" in out.text
    assert not await resource._accepts(account["tokens"]["access"])
    assert (await user.call()).code == 4


async def test_a_client_id_metadata_document_is_the_client(user: User) -> None:
    done, _ = await user.sign_in("--client-id", CLIENT_ID)
    assert done.code == 0, done.text
    assert user.account["client"] == {"id": CLIENT_ID, "secret": "", "auth_method": "none"}
    assert (await user.call()).code == 0


async def test_a_client_signs_in_as_itself_and_again_without_a_person(user: User, issuer: str) -> None:
    options = ("--client-credentials", "--client-id", "robot", "--client-secret", "--yes", "--issuer", issuer)
    wrong = await user.gloveport("auth", "login", "it", *options, stdin="wrong")
    assert (wrong.code, "invalid_client" in wrong.text) == (4, True), wrong.text
    done = await user.gloveport("auth", "login", "it", *options, stdin=CLIENT_SECRET)
    assert done.code == 0, done.text
    age(user)
    before = user.account["tokens"]["access"]
    assert (await user.call()).code == 0
    assert user.account["tokens"]["access"] != before


@pytest.mark.parametrize("client", [(), ("--client-id", "television")], ids=["registered", "given"])
async def test_a_person_types_a_code_on_another_device(user: User, client: tuple[str, ...]) -> None:
    process = await user.start("auth", "login", "it", "--device", *client, "--yes")
    assert process.stdout
    said = ""
    while not (shown := re.search(r"open (\S+) on any device, and type the code (\S+)\n", said)):
        line = (await process.stdout.readline()).decode()
        assert line, said
        said += line
    await browse(shown[1], user_code=shown[2])
    done = await user.finish(process, said)
    assert done.code == 0, done.text
    assert (await user.call()).code == 0


def age(user: User) -> None:
    """Let the stored token expire on disk."""
    found = user.vault.read("it.token")
    assert found
    about, value = found
    tokens = {**value["tokens"], "expires": 1_000_000_000.0}
    user.vault.write(replace(about, expires=1_000_000_000.0), {**value, "tokens": tokens})


class Disk:
    """What the provider of the `mcp` library loads from its storage: the same tokens."""

    def __init__(self, user: User) -> None:
        self._account = user.account

    async def get_tokens(self) -> OAuthToken:
        tokens = self._account["tokens"]
        return OAuthToken(access_token=tokens["access"], refresh_token=tokens["refresh"], expires_in=1)

    async def get_client_info(self) -> OAuthClientInformationFull:
        return OAuthClientInformationFull(client_id=self._account["client"]["id"], redirect_uris=[REDIRECT])

    async def set_tokens(self, tokens: OAuthToken) -> None:
        raise AssertionError("it has refreshed the token")

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


async def test_an_expired_token_is_refreshed_without_a_person_where_the_librarys_own_provider_asks_one(
    user: User, resource: Resource, issuer: str
) -> None:
    assert (await user.sign_in())[0].code == 0
    age(user)
    before = await administrator(issuer, "_forget")

    class PersonAsked(Exception):
        pass

    async def ask(*url: str) -> Any:
        raise PersonAsked

    about = OAuthClientMetadata(redirect_uris=[REDIRECT])
    theirs = OAuthClientProvider(f"{resource.origin}/mcp", about, Disk(user), ask, ask)
    async with httpx2.AsyncClient(auth=theirs, trust_env=False) as client:
        with pytest.raises(PersonAsked):
            await client.post(f"{resource.origin}/mcp", json={})
    assert await administrator(issuer, "_counts") == before  # it never tried the refresh token
    first = user.account["tokens"]["refresh"]
    assert (await user.call()).code == 0
    assert await administrator(issuer, "_counts") == before + 1
    assert user.account["tokens"]["refresh"] != first  # rotated, and kept
    assert (await user.call()).code == 0
    assert await administrator(issuer, "_counts") == before + 1


async def test_fifty_parallel_calls_and_a_second_process_make_one_refresh(
    user: User, resource: Resource, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await user.sign_in())[0].code == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(user.home / ".local" / "share"))
    config = SourceConfig(
        "it", "mcp", f"{resource.origin}/mcp", allow_private=True, writes=("*",), labels=("not untrusted",)
    )
    async with Gloveport(sources=[config]) as port:
        assert await port.call("it.add", {"a": 1, "b": 1})
        for path in ("_forget", "_counts"):  # refused long before it expires; then expired on disk
            before = await administrator(issuer, path)
            if path == "_counts":
                age(user)
            calls = [port.call("it.add", {"a": number, "b": 1}) for number in range(50)]
            other = asyncio.create_task(user.call())
            assert len(await asyncio.gather(*calls)) == 50
            assert (await other).code == 0
            assert await administrator(issuer, "_counts") == before + 1


async def test_revocation_ends_in_a_sign_in_that_is_a_state(user: User, issuer: str) -> None:
    assert (await user.sign_in())[0].code == 0
    await administrator(issuer, "_revoke")
    for _ in range(2):
        refused = await user.call()
        assert refused.code == 4, refused.text
        assert "auth-required" in refused.text and "run `gloveport auth login it`" in refused.text
        assert "Traceback" not in refused.text
    assert "sign in again" in (await user.gloveport("auth", "list")).text
    assert (await user.gloveport("auth", "test", "it")).code == 4
    assert (await user.sign_in())[0].code == 0
    assert (await user.call()).code == 0
