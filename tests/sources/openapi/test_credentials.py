"""Credentials: which are sent, where, and the error when one is missing."""

import pytest

from gloveport.errors import ToolError
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.openapi.call.credentials import SourceCredentials
from gloveport.sources.openapi.operation import Operation, Parameter
from tests.sources.openapi.support import Kit, answer

pytestmark = pytest.mark.integration

SLOTS = (
    CredentialSlot("key", "header", "X-Api-Key"),
    CredentialSlot("asked", "query", "api_key"),
    CredentialSlot("session", "cookie", "sid"),
    CredentialSlot("login", "basic"),
    CredentialSlot("token", "bearer"),
    CredentialSlot("oauth", "oauth2"),
    CredentialSlot("openid", "openid"),
)


def get(*security: tuple[str, ...], parameters: tuple[Parameter, ...] = ()) -> Operation:
    return Operation("GET", "/x", parameters=parameters, security=security)


@pytest.mark.parametrize(
    ("slot", "header", "value"),
    [
        ("key", "x-api-key", "s3cret"),
        ("session", "cookie", "sid=s3cret"),
        ("login", "authorization", "Basic czNjcmV0"),
        ("token", "authorization", "Bearer s3cret"),
        ("oauth", "authorization", "Bearer s3cret"),
        ("openid", "authorization", "Bearer s3cret"),
    ],
)
async def test_a_secret_is_sent_where_its_scheme_says(kit: Kit, slot: str, header: str, value: str) -> None:
    kit.environment[f"GLOVEPORT_API_{slot.upper()}"] = "s3cret"
    await kit.call(get((slot,)), slots=SLOTS)
    assert kit.server.last.header(header) == value
    assert kit.server.last.query == ""


async def test_a_secret_in_the_query_comes_after_the_arguments_and_can_not_be_one(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_ASKED"] = "s3cret&x=1"
    parameters = (Parameter("q", "q", "query"), Parameter("api_key", "api_key", "query"))
    await kit.call(get(("asked",), parameters=parameters), {"q": "a"}, slots=SLOTS)
    assert kit.server.last.query == "q=a&api_key=s3cret%26x%3D1"
    with pytest.raises(ToolError, match="`api_key` is sent as a credential"):
        await kit.call(get(("asked",), parameters=parameters), {"q": "a", "api_key": "forged"}, slots=SLOTS)
    assert len(kit.server.seen) == 1


async def test_cookies_of_arguments_and_of_credentials_share_one_header(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_SESSION"] = "s3cret"
    parameters = (Parameter("theme", "theme", "cookie"), Parameter("sid", "sid", "cookie"))
    await kit.call(get(("session",), parameters=parameters), {"theme": "dark"}, slots=SLOTS)
    assert kit.server.last.header("cookie") == "theme=dark; sid=s3cret"
    with pytest.raises(ToolError, match="`sid` is sent as a credential"):
        await kit.call(get(("session",), parameters=parameters), {"theme": "dark", "sid": "forged"}, slots=SLOTS)


async def test_the_first_alternative_with_all_credentials_is_used(kit: Kit) -> None:
    kit.environment |= {"GLOVEPORT_API_KEY": "k", "GLOVEPORT_API_TOKEN": "t", "GLOVEPORT_API_OAUTH": "o"}
    await kit.call(get(("key", "login"), ("key", "token"), ("oauth",)), slots=SLOTS)
    assert (kit.server.last.header("x-api-key"), kit.server.last.header("authorization")) == ("k", "Bearer t")


async def test_an_optional_credential_is_sent_when_there_is_one(kit: Kit) -> None:
    await kit.call(get((), ("token",)), slots=SLOTS)
    assert kit.server.last.header("authorization") is None
    kit.environment["GLOVEPORT_API_TOKEN"] = "t"
    await kit.call(get((), ("token",)), slots=SLOTS)
    assert kit.server.last.header("authorization") == "Bearer t"


async def test_an_operation_that_needs_none_gets_none(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_TOKEN"] = "t"
    await kit.call(get(), slots=SLOTS)
    assert kit.server.last.header("authorization") is None


async def test_a_missing_credential_is_named_by_its_variable_and_nothing_is_sent(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_KEY"] = "k"
    with pytest.raises(ToolError) as caught:
        await kit.call(get(("key", "login"), ("token",)), slots=SLOTS, credentials={"token": "env:MY_TOKEN"})
    assert caught.value.code == "auth-required"
    assert caught.value.setting == "set GLOVEPORT_API_KEY and set GLOVEPORT_API_LOGIN, or set MY_TOKEN"
    assert kit.server.seen == []


async def test_a_person_is_told_to_sign_in_where_a_service_has_accounts() -> None:
    known = SourceCredentials("api", SLOTS, ConfiguredCredentials({}, egress=Egress()))
    with pytest.raises(ToolError) as caught:
        await known.attach([["oauth"], ["token"]], "https://api.example")
    sign_in, _, others = (caught.value.setting or "").partition(" to sign in, or ")
    assert sign_in == "run `gloveport auth login api.oauth`"
    assert others == (
        "`gloveport auth add api.oauth` or set GLOVEPORT_API_OAUTH for a token, "
        "or run `gloveport auth add api` or set GLOVEPORT_API_TOKEN"
    )


async def test_a_refused_credential_is_a_matter_for_a_person(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_TOKEN"] = "canary"
    kit.server.reply = answer(b'{"message": "Bad credentials: canary"}', 401)
    with pytest.raises(ToolError, match="Bad credentials") as caught:
        await kit.call(get(("token",)), slots=SLOTS)
    assert (caught.value.code, caught.value.status) == ("auth-required", 401)
    assert caught.value.setting == "give it another credential: set GLOVEPORT_API_TOKEN"
    assert "canary" not in repr(vars(caught.value))


async def test_an_unknown_slot_is_never_filled(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_GONE"] = "x"
    kit.environment["GLOVEPORT_API_TOKEN"] = "t"
    for needed in (("gone",), ("token", "gone")):
        with pytest.raises(ToolError, match="no credential"):
            await kit.call(get(needed), slots=SLOTS)
    assert kit.server.seen == []


def test_a_configured_slot_that_does_not_exist_is_a_warning_that_names_the_slots(kit: Kit) -> None:
    source = kit.source({"it": get(("token",))}, slots=SLOTS, credentials={"tokn": "env:A", "token": "env:B"})
    (warning,) = source.source_info().warnings
    assert "no credential slot `tokn`" in warning and "did you mean `token`?" in warning
    assert all(f"`{slot.name}`" in warning for slot in SLOTS) and "env:A" not in warning
    source = kit.source({"it": get()}, credentials={"any": "env:A"})
    assert source.source_info().warnings == ()


async def test_a_credential_for_a_definition_without_schemes_is_sent_as_a_bearer_token(kit: Kit) -> None:
    kit.environment["GITHUB_TOKEN"] = "t"
    await kit.call(get(), credentials={"token": "env:GITHUB_TOKEN"})
    assert kit.server.last.header("authorization") == "Bearer t"
    await kit.call(get(), credentials={"token": "env:UNSET"})
    assert kit.server.last.header("authorization") is None


async def test_an_echoed_secret_does_not_come_back(kit: Kit) -> None:
    kit.environment["GLOVEPORT_API_TOKEN"] = "a-long-secret-token"
    kit.server.reply = lambda seen: (
        b"HTTP/1.1 500 No\r\ncontent-type: text/plain\r\ncontent-length: 26\r\n\r\n"
        + (seen.header("authorization") or "").encode()
    )
    with pytest.raises(ToolError) as caught:
        await kit.call(get(("token",)), slots=SLOTS)
    assert "a-long-secret-token" not in f"{caught.value!r} {caught.value.data!r}"
