"""The Python SDK's OAuth provider in an authorization scenario: a store in memory, and a browser that has signed in."""

from __future__ import annotations

import json
import os
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from interop.our_account import CLIENT_DOCUMENT

REDIRECT = AnyUrl("http://localhost:3000/callback")


class Storage:
    """Tokens and the client of one process."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the client."""
        self.client = client_info


class Browser:
    """Opens a link, and keeps where the server sent it back to."""

    answer: AuthorizationCodeResult

    async def open(self, url: str) -> None:
        """Open a link."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            query = parse_qs(urlsplit((await client.get(url)).headers["location"]).query)
        first = {name: values[0] for name, values in query.items()}
        self.answer = AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))

    async def result(self) -> AuthorizationCodeResult:
        """Return the answer of the server."""
        return self.answer


def provider(url: str) -> httpx2.Auth:
    """Return the provider for a scenario, with the client that it gives its user."""
    scenario, context = os.environ["MCP_CONFORMANCE_SCENARIO"], json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    client = None
    if "client_secret" in context:
        if "client-credentials" in scenario:
            given = (context["client_id"], context["client_secret"])
            return ClientCredentialsOAuthProvider(url, Storage(None), *given)
        client = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic",
        )
    about = OAuthClientMetadata(
        client_name="SDK", redirect_uris=[REDIRECT], grant_types=["authorization_code", "refresh_token"]
    )
    browser = Browser()
    document = CLIENT_DOCUMENT if scenario == "auth/basic-cimd" else None
    return OAuthClientProvider(url, about, Storage(client), browser.open, browser.result, document)
