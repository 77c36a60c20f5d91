"""The server as a protected resource of a public authorization server: real metadata, real keys, real tokens (M8)."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gloveport import Gloveport
from gloveport.config import AgentConfig, Config, GovernanceConfig, ServeConfig
from gloveport.surfaces.http.protected_resource import ProtectedResource
from tests.oauth.support import authorization_server
from tests.surfaces.agents import http_server

RESOURCE = "https://glove.example/mcp"


@pytest.fixture(scope="module")
async def issuer() -> AsyncIterator[str]:
    async with authorization_server("mock.mjs") as found:
        yield found


@pytest.fixture(scope="module")
async def url(issuer: str) -> AsyncIterator[str]:
    settings = Config(governance=GovernanceConfig(agents={"research": AgentConfig("research")}))
    serve = ServeConfig(issuer, RESOURCE, "", "scope", {"desk": "research"}, issuer_private=True)
    async with http_server(Gloveport(config=settings, spare=0), resource=ProtectedResource(serve)) as url:
        yield url


async def token(issuer: str, **form: str) -> str:
    async with httpx2.AsyncClient(trust_env=False) as client:
        reply = await client.post(f"{issuer}/token", data={"grant_type": "client_credentials", "scope": "desk", **form})
    return reply.json()["access_token"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_with_a_token_of_the_issuer_runs_a_program(url: str, issuer: str, mode: Any) -> None:
    headers = {"authorization": f"Bearer {await token(issuer, aud=RESOURCE)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client:
            ran = await client.call_tool("execute", {"code": "6 * 7"})
    assert ran.structured_content is not None
    assert ran.structured_content["value"] == 42


async def test_a_token_of_the_same_issuer_for_another_service_is_refused(url: str, issuer: str) -> None:
    for form in ({"aud": "https://other.example"}, {}):
        async with httpx2.AsyncClient(trust_env=False) as client:
            headers = {"authorization": f"Bearer {await token(issuer, **form)}"}
            assert (await client.get(f"{url}/v1/tools", headers=headers)).status_code == 401
