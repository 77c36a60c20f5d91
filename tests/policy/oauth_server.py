"""A small authorization server and the service that it protects, on loopback, with switches for each kind of misbehaviour."""

import hashlib
import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.sources.mcp.support import served


class OAuthServer:
    """Gives tokens that rotate. `refreshes` counts, `metadata` and `resource` override what it says of itself.

    One that is not `described` says nothing of itself, and without a `challenge` nobody asks for tokens of its service. The
    service names `scope` in its refusals, and with `more_scope`
    wants a token with that one. It answers no GET while `gets` is false.
    """

    def __init__(self) -> None:
        self.origin = ""
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshes = 0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.metadata: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}
        self.registration: dict[str, Any] = {}
        self.registered: list[dict[str, Any]] = []
        self.scope = self.more_scope = ""
        self.gets = True
        self.challenge = True
        self.described = True
        self.broken = 0  # the status of the token endpoint, while it is not 0
        self.polls_left = 1
        self.lifetime = 3600
        self.iss: str | None = ""
        self.said: dict[str, bytes] = {}  # by path: what it says instead
        self.silent = ""  # a path at which it never answers

    @property
    def app(self) -> ASGIApp:
        routes = [
            Route("/.well-known/oauth-protected-resource/mcp", self._resource),
            Route("/.well-known/oauth-authorization-server", self._metadata),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/register", self._register, methods=["POST"]),
            Route("/device", self._device, methods=["POST"]),
            Route("/revoke", self._revoke, methods=["POST"]),
            Route("/mcp", self._service, methods=["GET", "POST"]),
        ]
        app = Starlette(routes=routes)

        async def misbehaving(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope.get("path", "")
            if self.silent and path == self.silent:
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            await (Response(self.said[path]) if path in self.said else app)(scope, receive, send)

        return misbehaving

    async def _resource(self, request: Request) -> Response:
        if not self.described:
            return Response(status_code=404)
        found = {"resource": f"{self.origin}/mcp", "authorization_servers": [self.origin], "scopes_supported": ["read"]}
        return JSONResponse(found | self.resource)

    async def _metadata(self, request: Request) -> Response:
        if not self.described:
            return Response(status_code=404)
        endpoints = {"authorization": "authorize", "token": "token", "registration": "register", "revocation": "revoke"}
        found = {f"{name}_endpoint": f"{self.origin}/{path}" for name, path in endpoints.items()}
        found |= {"device_authorization_endpoint": f"{self.origin}/device", "issuer": self.origin}
        about = {"code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": True}
        return JSONResponse(found | about | self.metadata)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"]}
        if self.iss is not None:
            answer["iss"] = self.iss or self.origin
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.requests.append((request.headers.get("authorization", ""), form))
        if self.broken:
            return JSONResponse({"error": "server_error"}, self.broken)
        problem = getattr(self, f"_by_{form['grant_type'].rpartition(':')[2]}")(form, request)
        if problem:
            return JSONResponse({"error": problem, "error_description": f"about {form}"}, 400)
        return JSONResponse(self.tokens())

    def tokens(self) -> dict[str, Any]:
        access, refresh = f"canary-access-{secrets.token_hex(8)}", f"canary-refresh-{secrets.token_hex(8)}"
        self.access.add(access)
        self.refresh.add(refresh)
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": self.lifetime}

    def _by_authorization_code(self, form: dict[str, str], request: Request) -> str:
        asked = self.codes.pop(form["code"], None)
        digest = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        good = asked and asked["code_challenge"] == digest and asked["redirect_uri"] == form["redirect_uri"]
        resource = f"{self.origin}/mcp" if self.described and self.challenge else None
        return "" if good and form.get("resource") == asked.get("resource") == resource else "invalid_grant"

    def _by_refresh_token(self, form: dict[str, str], request: Request) -> str:
        if form["refresh_token"] not in self.refresh:
            return "invalid_grant"
        self.refresh.discard(form["refresh_token"])  # rotation: a second use would revoke everything
        self.refreshes += 1
        return ""

    def _by_client_credentials(self, form: dict[str, str], request: Request) -> str:
        given = b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
        return "" if given == "robot:canary-client-secret" else "invalid_client"

    def _by_device_code(self, form: dict[str, str], request: Request) -> str:
        self.polls_left -= 1
        return "authorization_pending" if self.polls_left >= 0 else ""

    async def _register(self, request: Request) -> Response:
        self.registered.append(await request.json())
        return JSONResponse({**self.registered[-1], "client_id": "registered", **self.registration}, 201)

    async def _device(self, request: Request) -> Response:
        if (await request.form()).getlist("client_id") != ["tv"]:  # as RFC 6749 wants: no parameter twice
            return JSONResponse({"error": "invalid_request"}, 400)
        about = {"verification_uri": f"{self.origin}/type", "expires_in": 600, "interval": 1}
        return JSONResponse({"device_code": "canary-device", "user_code": "ABCD-EFGH", **about})

    async def _revoke(self, request: Request) -> Response:
        token = str((await request.form())["token"])
        self.access.discard(token)
        self.refresh.discard(token)
        return Response()

    async def _service(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.method == "GET" and not self.gets:
            return Response(status_code=405)
        if token in self.access and self.more_scope:
            about = f'Bearer error="insufficient_scope", scope="{self.more_scope}"'
            return Response("more", 403, {"www-authenticate": about})
        if token in self.access:
            return JSONResponse({"hello": token})
        metadata = f"{self.origin}/.well-known/oauth-protected-resource/mcp" if self.challenge is True else self.challenge
        scope = f', scope="{self.scope}"' if self.scope else ""
        headers = {"www-authenticate": f'Bearer resource_metadata="{metadata}"{scope}'} if metadata else {}
        return Response("sign in", 401, headers)


@asynccontextmanager
async def authorizing() -> AsyncIterator[OAuthServer]:
    """Yield a server that runs."""
    server = OAuthServer()
    async with served(server.app) as url:
        server.origin = url.removesuffix("/mcp")
        yield server
