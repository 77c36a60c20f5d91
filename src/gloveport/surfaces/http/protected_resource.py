"""The server as an OAuth 2.1 protected resource: it takes access tokens that an issuer made for it (RFC 9728, M8).

A token is a JWT (RFC 9068). Its claim decides which agent holds it. It is never more than an agent's: it can't approve.
"""

from __future__ import annotations

import time
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gloveport.config import ServeConfig
from gloveport.errors import CODES, GloveportError
from gloveport.policy.egress import Egress
from gloveport.policy.oauth.issuer_keys import IssuerKeys
from gloveport.surfaces.http import API_PATH, MCP_PATH
from gloveport.urls import parse

WELL_KNOWN = "/.well-known/oauth-protected-resource"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
TOKEN_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")
MAX_JWT_CHARS = 8192
CLOCK_SKEW_SECONDS = 30


def resource_from(settings: ServeConfig) -> ProtectedResource | None:
    """Return what checks access tokens; None without an issuer in the settings."""
    return ProtectedResource(settings) if settings.issuer else None


class ProtectedResource:
    """Checks access tokens, and tells clients where they get one."""

    def __init__(self, settings: ServeConfig) -> None:
        self._settings = settings
        self._keys = IssuerKeys(Egress(), settings.issuer, allow_private=settings.issuer_private)
        at = parse(settings.resource)
        path = "" if at.path == "/" else at.path.rstrip("/")
        self.paths = frozenset({WELL_KNOWN, f"{WELL_KNOWN}{path}", f"{WELL_KNOWN}{MCP_PATH}", f"{WELL_KNOWN}{API_PATH}"})
        self.challenge = f'resource_metadata="{at.origin}{WELL_KNOWN}{path}"'

    @property
    def routes(self) -> list[Route]:
        """The routes of the metadata, which everybody may read."""
        return [Route(path, self._metadata) for path in sorted(self.paths)]

    async def agent_of(self, token: str) -> str | None:
        """Return the agent that holds an access token; None for a token that is not valid here.

        Raise GloveportError `forbidden` for a valid one that lacks the scope, or whose holder is no agent.
        """
        claims = await self._claims(token) if len(token) <= MAX_JWT_CHARS and token.count(".") == 2 else None
        if claims is None or not self._is_valid(claims):
            return None
        settings = self._settings
        if settings.scope and settings.scope not in _scopes(claims):
            raise _forbidden(f"the access token lacks the scope {settings.scope}")
        holder = claims.get(settings.agent_claim)
        agent = settings.agents.get(holder) if isinstance(holder, str) else None
        if agent is None:
            raise _forbidden(f"the settings name no agent for the {settings.agent_claim} of this access token")
        return agent

    async def close(self) -> None:
        """Close the client that reads the keys."""
        await self._keys.close()

    async def _claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token with a valid signature."""
        try:
            header = jws.extract_compact(token.encode()).headers()
            algorithm, kid, kind = header.get("alg"), header.get("kid", ""), header.get("typ")
            if algorithm not in ALGORITHMS or not isinstance(kid, str):
                return None
            if (kind.lower() if isinstance(kind, str) else kind) not in TOKEN_TYPES:
                return None
            key = await self._keys.find(kid)
            # The algorithm must be of the key's own kind: the library refuses another one.
            return None if key is None else jwt.decode(token, key, algorithms=[algorithm]).claims
        except (JoseError, ValueError, TypeError, RecursionError):
            return None

    def _is_valid(self, claims: dict[str, Any]) -> bool:
        now, audience = time.time(), claims.get("aud")
        expires, begins, issued = (claims.get(name, 0) for name in ("exp", "nbf", "iat"))
        return (
            claims.get("iss") == self._settings.issuer
            and self._settings.resource in (audience if isinstance(audience, list) else [audience])
            and all(isinstance(each, int | float) and not isinstance(each, bool) for each in (expires, begins, issued))
            and expires > now - CLOCK_SKEW_SECONDS
            and begins < now + CLOCK_SKEW_SECONDS
            and issued < now + CLOCK_SKEW_SECONDS
        )

    async def _metadata(self, request: Request) -> JSONResponse:
        scopes = {"scopes_supported": [self._settings.scope]} if self._settings.scope else {}
        about = {"resource": self._settings.resource, "authorization_servers": [self._settings.issuer]}
        return JSONResponse({**about, **scopes, "bearer_methods_supported": ["header"], "resource_name": "Gloveport"})


def _scopes(claims: dict[str, Any]) -> list[Any]:
    stated = claims.get("scope", claims.get("scp"))
    return stated.split() if isinstance(stated, str) else stated if isinstance(stated, list) else []


def _forbidden(message: str) -> GloveportError:
    return GloveportError(message, code="forbidden", hint=CODES["forbidden"].fix)
