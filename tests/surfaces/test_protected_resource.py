"""The server as an OAuth 2.1 protected resource: tokens of its issuer, and every forgery that is known (M8)."""

import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import digest as hmac_digest
from typing import Any

import httpx2
import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from gloveport import Gloveport
from gloveport.config import AgentConfig, Config, GovernanceConfig, ServeConfig
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.protected_resource import ProtectedResource
from tests.sources.mcp.support import served
from tests.surfaces.agents import TOKEN, http_server

pytestmark = pytest.mark.integration
RESOURCE = "https://glove.example/mcp"
KEY = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
STRANGER = RSAKey.generate_key(2048, {"kid": "first"})


@dataclass
class Issuer:
    """Publishes one key, and counts who asks for it."""

    origin: str = ""
    keys: list[dict[str, Any]] = field(default_factory=lambda: [dict(KEY.as_dict(private=False))])
    fetches: int = 0

    @property
    def app(self) -> Starlette:
        async def metadata(request: Any) -> JSONResponse:
            return JSONResponse({"issuer": self.origin, "jwks_uri": f"{self.origin}/jwks"})

        async def jwks(request: Any) -> JSONResponse:
            self.fetches += 1
            return JSONResponse({"keys": self.keys})

        return Starlette(routes=[Route("/.well-known/oauth-authorization-server", metadata), Route("/jwks", jwks)])

    def token(self, key: Any = KEY, header: dict[str, Any] | None = None, **changes: Any) -> str:
        now = int(time.time())
        claims = {"iss": self.origin, "aud": RESOURCE, "exp": now + 300, "iat": now, "client_id": "web", "scope": "run x"}
        stated = {"alg": "RS256", "kid": "first", "typ": "at+jwt"} | (header or {})
        return jwt.encode(stated, {k: v for k, v in (claims | changes).items() if v is not None}, key)


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[Issuer]:
    found = Issuer()
    async with served(found.app) as origin:
        found.origin = origin.removesuffix("/mcp")
        yield found


def resource_of(issuer: Issuer) -> ProtectedResource:
    agents = {"web": "research", "gone": "nobody"}
    return ProtectedResource(ServeConfig(issuer.origin, RESOURCE, "run", "client_id", agents, issuer_private=True))


@pytest.fixture(scope="module")
async def url(issuer: Issuer) -> AsyncIterator[str]:
    settings = Config(governance=GovernanceConfig(agents={"research": AgentConfig("research")}))
    port = Gloveport(config=settings, spare=0)
    names = ServerNames(hosts=frozenset({"glove.example"}))
    async with http_server(port, names=names, resource=resource_of(issuer)) as url:
        yield url


async def ask(url: str, token: str, path: str = "/v1/tools", method: str = "GET", **options: Any) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.request(
            method, url + path, headers={"authorization": f"Bearer {token}"} if token else {}, **options
        )


async def test_a_client_without_a_token_learns_where_to_get_one(url: str, issuer: Issuer) -> None:
    refused = await ask(url, "", "/mcp", "POST", json={})
    place = "https://glove.example/.well-known/oauth-protected-resource/mcp"
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == f'Bearer realm="gloveport", resource_metadata="{place}"'
    for path in ("", "/mcp", "/v1"):
        about = (await ask(url, "", f"/.well-known/oauth-protected-resource{path}")).json()
        assert (about["resource"], about["authorization_servers"]) == (RESOURCE, [issuer.origin])
        assert about["scopes_supported"] == ["run"]


async def test_a_token_for_us_is_that_of_its_agent_and_the_static_token_still_works(url: str, issuer: Issuer) -> None:
    for audience in (RESOURCE, ["https://other.example", RESOURCE]):
        assert (await ask(url, issuer.token(aud=audience))).status_code == 200
    assert (await ask(url, issuer.token(), "/v1/runs", "POST", json={"code": "1 + 1"})).json()["value"] == 2
    assert (await ask(url, TOKEN)).status_code == 200


async def test_no_access_token_approves_or_administers(url: str, issuer: Issuer) -> None:
    everything: Any = {"role": "admin", "roles": ["admin", "approver"], "scope": "run admin approver"}
    for path in ("/v1/approvals", "/v1/agents", "/v1/audit", "/v1/approvals/standing"):
        assert (await ask(url, issuer.token(**everything), path)).status_code == 403
    answer = {"approve": True, "requests": {"1": "0"}}
    assert (await ask(url, issuer.token(**everything), "/v1/approvals/answer", "POST", json=answer)).status_code == 403


def encoded(value: Any) -> str:
    return urlsafe_b64encode(value if isinstance(value, bytes) else orjson.dumps(value)).rstrip(b"=").decode()


def unsigned(issuer: Issuer) -> str:
    return f"{encoded({'alg': 'none', 'kid': 'first'})}.{issuer.token().split('.')[1]}."


def signed_with_the_public_key(issuer: Issuer) -> str:
    """Sign with HMAC and the public key, which a library would verify that trusts the header."""
    text = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{issuer.token().split('.')[1]}"
    return f"{text}.{encoded(hmac_digest(KEY.as_pem(private=False), text.encode(), sha256))}"


def changed(issuer: Issuer) -> str:
    head, _, signature = issuer.token().split(".")
    return ".".join(
        (
            head,
            encoded({"iss": issuer.origin, "aud": RESOURCE, "exp": 2**40, "client_id": "web", "scope": "run"}),
            signature,
        )
    )


FORGERIES: dict[str, Callable[[Issuer], str]] = {
    "wrong audience": lambda issuer: issuer.token(aud="https://other.example/mcp"),
    "audience below ours": lambda issuer: issuer.token(aud=RESOURCE + "/x"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "wrong issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "issuer with a slash": lambda issuer: issuer.token(iss=issuer.origin + "/"),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 60),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "expiry as text": lambda issuer: issuer.token(exp="9999999999"),
    "not yet": lambda issuer: issuer.token(nbf=int(time.time()) + 600),
    "from the future": lambda issuer: issuer.token(iat=int(time.time()) + 600),
    "key of another issuer": lambda issuer: issuer.token(STRANGER),
    "key of another kind": lambda issuer: issuer.token(ECKey.generate_key("P-256"), {"alg": "ES256"}),
    "key in the header": lambda issuer: issuer.token(STRANGER, {"kid": "mine", "jwk": STRANGER.as_dict(private=False)}),
    "an identity token": lambda issuer: issuer.token(header={"typ": "dpop+jwt"}),
    "alg none": unsigned,
    "HS256 with the public key": signed_with_the_public_key,
    "changed claims": changed,
    "no token at all": lambda issuer: "a.b.c",
    "deep header": lambda issuer: encoded(b'{"alg":' + b"[" * 3000 + b"]" * 3000 + b"}") + ".e30.x",
    "too long": lambda issuer: issuer.token(padding="x" * 9000),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_token_that_is_not_valid_here_is_nobodys(url: str, issuer: Issuer, forgery: str) -> None:
    refused = await ask(url, FORGERIES[forgery](issuer))
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_valid_token_without_the_scope_or_an_agent_is_refused(url: str, issuer: Issuer) -> None:
    for changes in (
        {"scope": "other"},
        {"scope": None},
        {"client_id": "unknown"},
        {"client_id": None},
        {"client_id": ["web"]},
    ):
        assert (await ask(url, issuer.token(**changes))).status_code == 403
    assert (await ask(url, issuer.token(client_id="gone"))).status_code == 401  # an agent that the settings no longer name


async def test_a_flood_of_unknown_keys_asks_the_issuer_once(issuer: Issuer) -> None:
    resource = resource_of(issuer)
    before = issuer.fetches
    for number in range(200):
        assert await resource.agent_of(issuer.token(header={"kid": f"unknown-{number}"})) is None
    assert issuer.fetches == before + 1
    assert await resource.agent_of(issuer.token()) == "research"
    await resource.close()


async def test_symmetric_and_private_keys_of_the_issuer_are_not_used(issuer: Issuer) -> None:
    secret = b"0" * 32
    issuer.keys.append({"kty": "oct", "kid": "shared", "k": encoded(secret)})
    text = f"{encoded({'alg': 'HS256', 'kid': 'shared'})}.{issuer.token().split('.')[1]}"
    resource = resource_of(issuer)
    assert await resource.agent_of(f"{text}.{encoded(hmac_digest(secret, text.encode(), sha256))}") is None
    await resource.close()


def test_an_issuer_and_a_resource_are_https_and_come_together() -> None:
    from gloveport.config.serve import serve_from
    from gloveport.errors import OptionError

    for values in (
        {"issuer": "http://login.example", "resource": RESOURCE},
        {"issuer": "https://login.example"},
        {"resource": RESOURCE},
        {"issuer": "https://login.example", "resource": RESOURCE + "?a=1"},
        {"issuer": "https://login.example", "resource": RESOURCE, "scope": 'a"b'},
        {"agents": {"a": 1}},
        {"issuer_private": "yes"},
    ):
        with pytest.raises(OptionError, match=r"of \[serve\] must be"):
            serve_from(values, {})
