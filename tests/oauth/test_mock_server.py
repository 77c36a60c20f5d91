"""Sign in at `oauth2-mock-server`, as it is and while it attacks the sign-in (M7, M9)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.oauth.support import Resource, User, authorization_server, protected

CLIENT = ("--client-id", "desk")


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[str]:
    async with authorization_server("mock.mjs") as found:
        yield found


@pytest.fixture
async def resource(issuer: str) -> AsyncIterator[Resource]:
    async with protected(issuer, f"{issuer}/introspect") as found:
        yield found


@pytest.fixture
def user(resource: Resource, tmp_path: Path) -> User:
    return User(tmp_path, f"{resource.origin}/mcp")


async def misbehave(issuer: str, **changes: dict[str, Any]) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        (await client.post(f"{issuer}/_misbehave", data={"changes": json.dumps(changes)})).raise_for_status()


async def forms(issuer: str) -> list[dict[str, str]]:
    """What the token endpoint got."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{issuer}/_requests")).json()


async def test_a_sign_in_calls_and_refreshes(user: User, resource: Resource, issuer: str) -> None:
    await misbehave(issuer, token={"expires_in": 5})  # so that the next call has to refresh it
    done, page = await user.sign_in(*CLIENT)
    assert (done.code, "You are signed in" in page) == (0, True), done.text
    assert (await user.call()).code == 0
    first, *later = await forms(issuer)
    assert (first["grant_type"], first["client_id"], first["resource"]) == (
        "authorization_code",
        "desk",
        f"{resource.origin}/mcp",
    )
    assert later and {(form["grant_type"], form["resource"]) for form in later} == {("refresh_token", first["resource"])}
    used = [form["refresh_token"] for form in later]
    assert len(used) == len(set(used))  # each rotated token is used once
    assert (await user.gloveport("auth", "logout", "it")).code == 0


async def test_a_client_signs_in_as_itself(user: User, issuer: str) -> None:
    await misbehave(issuer)
    done = await user.gloveport("auth", "login", "it", *CLIENT, "--client-credentials", "--yes")
    assert (done.code, (await user.call()).code) == (0, 0), done.text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"redirect": {"iss": "https://evil.test"}}, "comes from another authorization server"),
        ({"redirect": {"error": "access_denied"}}, "the sign-in was refused: access_denied"),
        ({"redirect": {"code": None}}, "the answer has no code"),
        ({"redirect": {"code": "stolen-elsewhere"}}, "refused"),
        ({"metadata": {"issuer": "https://evil.test"}}, "those of another issuer"),
        ({"metadata": {"authorization_endpoint": "javascript:alert(1)"}}, "is not a plain https URL"),
        ({"metadata": {"token_endpoint": "http://evil.test/token"}}, "is not an https URL"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "does not support PKCE"),
        ({"token": {"token_type": "mac"}}, "no bearer token"),
        ({"token": {"access_token": "two\r\nlines"}}, "no token that can be used"),
        ({"token": {"access_token": None}}, "no token that can be used"),
        ({"token": {"statusCode": 400, "error": "invalid_grant", "error_description": "\x1b[2Jhello"}}, "invalid_grant"),
    ],
    ids=str,
)
async def test_an_attacked_sign_in_ends_and_stores_nothing(
    user: User, resource: Resource, issuer: str, changes: dict[str, Any], says: str
) -> None:
    await misbehave(issuer, **changes)
    done, _ = await user.sign_in(*CLIENT)
    assert (done.code, says in done.text, "Traceback" in done.text) == (4, True, False), done.text
    assert not user.vault.path.exists() and resource.seen == []


@pytest.mark.parametrize("redirect", [{"state": "fixed-by-the-attacker"}, {"state": None}], ids=str)
async def test_an_answer_to_another_sign_in_is_refused_and_the_right_one_is_still_waited_for(
    user: User, issuer: str, redirect: dict[str, Any]
) -> None:
    await misbehave(issuer, redirect=redirect)
    process, _, page = await user.answer_sign_in(*CLIENT)
    assert "not the answer to the sign-in" in page
    assert process.returncode is None
    process.terminate()
    await user.finish(process)
    assert await forms(issuer) == [] and not user.vault.path.exists()
