"""Requests to an authorization server: code with PKCE, device code, client credentials, refresh, revocation."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from gloveport.errors import ToolError
from gloveport.policy.egress import Reach, Request
from gloveport.policy.oauth.discovery import AuthorizationServer, safe_url

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

MAX_TOKEN_REPLY_BYTES = 256 * 1024
TOKEN_SECONDS = 30
DEFAULT_POLL_SECONDS = 5.0
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
_FORM = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
_ERROR = re.compile(r"[A-Za-z_]{1,60}")
_TOKEN = re.compile(r"[\x21-\x7e]{1,32768}")


class GrantError(ToolError):
    """An authorization server refused a grant; `reason` is its error code, such as `invalid_grant`."""

    code = "auth-required"

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Who we are to an authorization server. Its secret is never shown."""

    id: str
    secret: str = field(default="", repr=False)
    auth_method: str = "none"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an authorization server gave. `expires` is in seconds since 1970."""

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    expires: float | None = None
    scope: str = ""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code that a person types at a URL, on any device."""

    user_code: str
    url: str
    interval: float
    expires: float
    code: str = field(repr=False)


class PendingSignIn:
    """An authorization request that a person answers in a browser. Its state and its verifier are used once."""

    def __init__(self, server: AuthorizationServer, client: OAuthClient, redirect_uri: str, scope: str) -> None:
        self.redirect_uri = redirect_uri
        self._server = server
        self._state = secrets.token_urlsafe(32)
        self.verifier = secrets.token_urlsafe(48)
        self._used = False
        safe_url(server.authorization_endpoint, "the authorization endpoint")
        self.url: str = prepare_grant_uri(
            server.authorization_endpoint,
            client.id,
            "code",
            redirect_uri=redirect_uri,
            scope=scope or None,
            state=self._state,
            code_challenge=create_s256_code_challenge(self.verifier),
            code_challenge_method="S256",
            resource=server.resource or None,
        )

    def code_from(self, query: str) -> str:
        """Return the code of an answer; raise GrantError for one that is not the answer to this request (M9)."""
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
        answer = dict(pairs)
        if len(answer) != len(pairs):
            raise GrantError("the answer names a parameter twice", "invalid_request")
        if self._used or not hmac.compare_digest(answer.get("state", "").encode(), self._state.encode()):
            raise GrantError("the answer is not for this sign-in", "invalid_state")
        self._used = True
        issuer = answer.get("iss")
        if issuer != self._server.issuer and (issuer is not None or self._server.returns_issuer):
            raise GrantError("the answer comes from another authorization server", "invalid_issuer")
        if "error" in answer:
            raise GrantError(f"the sign-in was refused: {_reason(answer['error'])}", _reason(answer["error"]))
        if not answer.get("code"):
            raise GrantError("the answer has no code", "invalid_response")  # it has our state: nothing better will come
        return answer["code"]


class Grants:
    """Asks one authorization server for tokens, as one client."""

    def __init__(self, egress: Egress, server: AuthorizationServer, client: OAuthClient, *, allow_private: bool) -> None:
        self._egress = egress
        self._server = server
        self.client = client
        self._reach = Reach(
            server.origins,
            allow_private,
            total_seconds=TOKEN_SECONDS,
            max_bytes=MAX_TOKEN_REPLY_BYTES,
            max_redirects=0,
        )

    async def register(self, redirect_uri: str, scope: str) -> OAuthClient:
        """Register a client (RFC 7591), use it from now on, and return it. Without a redirect it is for device codes."""
        methods = self._server.auth_methods or AUTH_METHODS
        wanted: dict[str, Any] = {
            "client_name": "Gloveport",
            "application_type": "native",
            "redirect_uris": [redirect_uri] if redirect_uri else [],
            "grant_types": ["authorization_code" if redirect_uri else DEVICE_GRANT, "refresh_token"],
            "response_types": ["code"] if redirect_uri else [],
            "token_endpoint_auth_method": next(filter(methods.__contains__, AUTH_METHODS), "none"),
            **({"scope": scope} if scope else {}),
        }
        headers = (("content-type", "application/json"), ("accept", "application/json"))
        request = Request("POST", self._server.registration_endpoint, headers, msgspec.json.encode(wanted))
        reply = await self._egress.send(request, self._reach)
        answer = _answer(reply.body)
        if reply.status not in (200, 201) or not isinstance(answer.get("client_id"), str):
            message = f"{self._server.issuer} did not register a client: {_reason(answer.get('error'))}"
            raise GrantError(message, _reason(answer.get("error")))
        secret = answer.get("client_secret") or ""
        method = answer.get("token_endpoint_auth_method") or ("client_secret_basic" if secret else "none")
        if method not in AUTH_METHODS or not isinstance(secret, str):
            raise GrantError(f"{self._server.issuer} registered a client of an unknown kind", "invalid_client_metadata")
        self.client = OAuthClient(answer["client_id"], secret, method)
        return self.client

    async def by_code(self, code: str, pending: PendingSignIn) -> Tokens:
        """Exchange the code of a sign-in."""
        about = {"redirect_uri": pending.redirect_uri, "code": code, "code_verifier": pending.verifier}
        return await self._tokens("authorization_code", **about, resource=self._server.resource)

    async def by_client(self, scope: str) -> Tokens:
        """Get a token for the client itself."""
        return await self._tokens("client_credentials", scope=scope, resource=self._server.resource)

    async def by_refresh(self, refresh: str) -> Tokens:
        """Exchange a refresh token. Where the server gives no new one, the old one stays."""
        got = await self._tokens("refresh_token", refresh_token=refresh, resource=self._server.resource)
        return got if got.refresh else Tokens(got.access, refresh, got.expires, got.scope)

    async def device_code(self, scope: str) -> DeviceCode:
        """Ask for a code that a person types elsewhere (RFC 8628)."""
        fields = {"scope": scope, "resource": self._server.resource}  # who we are is added when it is sent
        answer = await self._post(self._server.device_endpoint, urlencode({k: v for k, v in fields.items() if v}))
        try:
            lifetime, interval = float(answer["expires_in"]), float(answer.get("interval", DEFAULT_POLL_SECONDS))
            user_code, code = str(answer["user_code"])[:100], str(answer["device_code"])
        except (KeyError, TypeError, ValueError):
            raise GrantError(f"{self._server.issuer} gave no device code", "invalid_response") from None
        url = safe_url(answer.get("verification_uri"), "the URL for the code")
        return DeviceCode(user_code, url, min(max(interval, 1.0), 60.0), time.time() + min(lifetime, 3600.0), code)

    async def by_device(self, device: DeviceCode) -> Tokens:
        """Exchange a device code; raise GrantError `authorization_pending` while the person has not answered."""
        return await self._tokens(DEVICE_GRANT, device_code=device.code, resource=self._server.resource)

    async def revoke(self, token: str) -> None:
        """Tell the server that a token is used no more (RFC 7009)."""
        body, _ = prepare_revoke_token_request(token, None, "", {})
        await self._send(self._server.revocation_endpoint, body)

    async def _tokens(self, grant_type: str, *, redirect_uri: str | None = None, **fields: str) -> Tokens:
        asked = time.time()
        given = {name: value for name, value in fields.items() if value}
        body: str = prepare_token_request(grant_type, "", redirect_uri, **given)
        answer = await self._post(self._server.token_endpoint, body)
        access, refresh = answer.get("access_token"), answer.get("refresh_token") or ""
        usable = isinstance(access, str) and isinstance(refresh, str) and _TOKEN.fullmatch(access)
        if not usable or (refresh and not _TOKEN.fullmatch(refresh)):
            raise GrantError(f"{self._server.issuer} gave no token that can be used", "invalid_response")
        if str(answer.get("token_type", "bearer")).lower() != "bearer":
            raise GrantError(f"{self._server.issuer} gave a token that is no bearer token", "unsupported_token_type")
        lifetime = answer.get("expires_in")
        expires = asked + lifetime if isinstance(lifetime, int | float) and 0 < lifetime < 1e9 else None
        return Tokens(str(access), refresh, expires, str(answer.get("scope") or "")[:2000])

    async def _post(self, url: str, body: str) -> dict[str, Any]:
        status, answer = await self._send(url, body)
        if status != 200 or "error" in answer:
            reason = _reason(answer.get("error"))
            if status >= 500:
                raise ToolError(
                    f"{self._server.issuer} answered with status {status}", code="source-unreachable", retryable=True
                )
            # The description is not shown: it may repeat what was sent.
            raise GrantError(f"{self._server.issuer} refused: {reason}", reason)
        return answer

    async def _send(self, url: str, body: str) -> tuple[int, dict[str, Any]]:
        auth = ClientAuth(self.client.id, self.client.secret, self.client.auth_method)
        try:
            _, headers, body = auth.prepare("POST", url, dict(_FORM), body)
        except UnicodeEncodeError:
            message = "the client's id or secret has a character that can't be sent"
            raise GrantError(message, "invalid_client") from None
        own = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        reply = await self._egress.send(Request("POST", url, tuple(own.items()), _bytes(body)), self._reach)
        return reply.status, _answer(reply.body)


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _answer(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(error: Any) -> str:
    return error if isinstance(error, str) and _ERROR.fullmatch(error) else "invalid_response"
