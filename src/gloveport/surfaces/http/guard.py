"""The guard in front of the HTTP application: a request that fails one of these checks is neither read nor parsed further.

In this order: its headers are unambiguous, the Host header names this server, the Origin is not another site, the token is
right, the path is one of ours, the content type is JSON, the body is small and shallow, and the server can admit another
run. A WebSocket is refused before the upgrade; its messages are checked where they are read.

In place of a token, a request to the API may have the cookie of a session of the pages. Browsers add it by themselves, and
send it to every port of a host. So such a request must name the session's key too, and come from a page of this origin.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import orjson
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gloveport.errors import CODES, GloveportError, OptionError, http_status
from gloveport.surfaces.documents import problem_document
from gloveport.surfaces.http import AGENT_SCOPE_KEY, API_PATH, CALLER_SCOPE_KEY, MCP_PATH, METRICS_PATH
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.connections import mark_authenticated
from gloveport.surfaces.http.revocation import RevocableConnection
from gloveport.surfaces.http.token import HOST_ROLES, Caller, TokenCheck
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, read_document, read_message
from gloveport.surfaces.web.pages import Pages
from gloveport.surfaces.web.sessions import LINK_SCHEME, WebSession, WebSessions, names_key
from gloveport.surfaces.web.views import twin_of

logger = logging.getLogger("gloveport")

BODY_TIMEOUT_SECONDS = 30.0
RETRY_AFTER_SECONDS = 2
PUBLIC_PATHS = frozenset({"/healthz", "/readyz"})
QUICK_TOOLS = ("search", "describe", "resume")
"""The MCP tools that start no program; every other one does, in direct mode too."""
RUNS_PATH = f"{API_PATH}/runs"
SIGN_IN_PATH = f"{API_PATH}/sign-in"
KEY_HEADER = "x-gloveport"
UNIQUE_HEADERS = ("host", "origin", "authorization", "content-type", "content-length", "cookie", KEY_HEADER)
SAFE_METHODS = ("GET", "HEAD")
Hold = Callable[[int], None]
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class ServerNames:
    """The names of this server: those of loopback, any address if it listens on others too, and the given hosts."""

    loopback: bool = True
    hosts: frozenset[str] = frozenset()

    def include(self, host: str) -> bool:
        """Return True when the Host header names this server; a DNS name that an attacker points here does not (M1)."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found[1].strip("[]")
        if name == "localhost" or name in self.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or (not self.loopback and not address.is_unspecified)


class Guard:
    """An ASGI application that checks requests before another application gets them."""

    def __init__(
        self, app: ASGIApp, names: ServerNames, token: TokenCheck, admission: Admission, sessions: WebSessions
    ) -> None:
        self._app = app
        self._pages = Pages()
        self._sessions = sessions
        self._names = names
        self._token = token
        self._admission = admission
        known = token.resource
        self._public = PUBLIC_PATHS | (known.paths if known is not None else frozenset())
        self._challenge = 'Bearer realm="gloveport"' + (f", {known.challenge}" if known is not None else "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        with self._admission.memory() as hold:  # the body counts until it is answered
            body, place = None, None
            try:
                headers = _headers(scope)
                if scope["path"] in self._public and scope["type"] == "http":
                    await self._app(scope, receive, send)
                    return
                if scope["type"] == "http" and (self._pages.serves(scope["path"]) or self._pages.answers_stray(scope)):
                    self._check_host(headers)
                    await self._pages(scope, receive, send)
                    return
                scope = _of_twin(scope)
                await self._check(scope, headers)
                if scope["type"] == "http":
                    is_post = scope["method"] == "POST"
                    body = await _body(headers, receive, hold) if is_post else b""
                    is_run = is_post and await _is_run(scope["path"], body)
                    await asyncio.sleep(0)  # the library parses the body again: let the loop turn between the two
                    place = self._admission.request if is_run else None
                else:
                    place = self._admission.socket
                if place is not None:
                    self._admission.check(scope[CALLER_SCOPE_KEY].name, is_socket=scope["type"] == "websocket")
            except GloveportError as error:
                await _refuse(scope, send, error, self._challenge)
                return
            with nullcontext() if place is None else place(scope[CALLER_SCOPE_KEY].name):
                await self._pass_on(scope, headers, receive, send, body)

    async def _pass_on(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send, body: bytes | None = None
    ) -> None:
        """Serve a request until its answer is complete, its client goes, or its token is revoked."""

        async def is_valid() -> bool:
            try:
                return await self._caller(scope, headers) == scope[CALLER_SCOPE_KEY]
            except GloveportError:
                return False

        async with RevocableConnection(scope, receive, send, is_valid) as connection:
            given = connection.receive if body is None else _replay(body, connection.receive)
            await self._app(scope, given, connection.send)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        if not self._names.include(headers.get("host", "")):
            raise _refusal("wrong-origin", "the Host header does not name this server")

    async def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller | None:
        """Return who sent a request: by its token, or by the cookie or the one-time code of a page."""
        given, path = headers.get("authorization", ""), scope["path"]
        is_http = scope["type"] == "http"
        if is_http and path == SIGN_IN_PATH and scope["method"] == "POST" and given.lower().startswith(f"{LINK_SCHEME} "):
            if (caller := self._sessions.redeem(given)) is None:
                raise _refusal("unauthorized", "this link was used, or has expired: `gloveport open` makes another one")
            return caller
        is_page = is_http and (path.startswith(f"{API_PATH}/") or path == METRICS_PATH)
        if given or "cookie" not in headers or not is_page:
            return await self._token.caller_of(given)
        if (session := await self._sessions.find(headers)) is None:
            raise _refusal("unauthorized", "nobody is signed in: `gloveport open` makes a link that signs you in")
        _check_page(scope["method"], headers, session)
        return session.caller

    async def _check(self, scope: Scope, headers: Mapping[str, str]) -> None:
        self._check_host(headers)
        host, origin = headers["host"], headers.get("origin")
        # Our own pages have this very origin; other sites, local files and sandboxed frames (`null`) do not.
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            raise _refusal("wrong-origin", "the request comes from another origin")
        try:
            caller = await self._caller(scope, headers)
        except OptionError as error:
            raise _refusal("unauthorized", error.message, error.hint) from None
        if caller is None:
            raise _refusal("unauthorized", "the request needs the server's token, or another one that it knows")
        scope[CALLER_SCOPE_KEY] = caller
        mark_authenticated(scope)
        if scope["path"] == MCP_PATH:
            if not caller.runs_programs:
                raise _refusal("forbidden", f"the role {caller.role!r} has no agent's tools")
            scope[AGENT_SCOPE_KEY] = caller.name
            # The library gives a session to nobody but its principal: another agent that has its id gets a 404 (M11).
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller.name, scopes=[]))
        elif not scope["path"].startswith(f"{API_PATH}/") and scope["path"] != METRICS_PATH:
            raise _refusal("not-found", "there is nothing at this path")
        if scope["type"] == "websocket":  # all of them serve hosts
            if caller.role not in HOST_ROLES:
                raise _refusal("forbidden", f"the role {caller.role!r} may not open a WebSocket")
            return
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_empty = not media and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        if scope["method"] == "POST" and media != "application/json" and not is_empty:
            raise _refusal("not-json", "the body must be application/json")


def _check_page(method: str, headers: Mapping[str, str], session: WebSession) -> None:
    """Refuse a request that has the cookie and was not made by a page of ours (M1, M16).

    Reads need the key too: browsers send the cookie to a server of another user at another port of this host.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise _refusal("wrong-origin", "the request comes from another site")
    is_read, has_key = method in SAFE_METHODS, names_key(session, headers.get(KEY_HEADER, ""))
    if is_read and not has_key:
        raise _refusal("unauthorized", f"nobody is signed in here: the cookie counts with its key in {KEY_HEADER} alone")
    if not has_key or (not is_read and "origin" not in headers):
        raise _refusal(
            "wrong-origin", f"a request with a cookie needs an Origin, and the key of its session in {KEY_HEADER}"
        )


def _of_twin(scope: Scope) -> Scope:
    """Return the request to the API that answers `VIEW.json`; any other request as it is."""
    is_read = scope["type"] == "http" and scope["method"] in SAFE_METHODS
    found = twin_of(scope["path"], scope["query_string"].decode("latin-1")) if is_read else None
    if found is None:
        return scope
    path, query = found
    return {**scope, "path": path, "raw_path": path.encode(), "query_string": query.encode()}


def _headers(scope: Scope) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1")
        if name in headers and name in UNIQUE_HEADERS:  # an attack: parsers differ in which one they take
            raise _refusal("bad-request", f"the header {name} is repeated")
        headers[name] = raw_value.decode("latin-1")
    # Two lengths of one body are an attack, too: a proxy may take one and this server the other (request smuggling).
    if "transfer-encoding" in headers and ("content-length" in headers or scope["http_version"] != "1.1"):
        raise _refusal("bad-request", "the length of the body is stated in two ways")
    return headers


async def _body(headers: Mapping[str, str], receive: Receive, hold: Hold) -> bytes:
    declared = headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared[:20]) > MAX_REQUEST_BYTES:
        raise _refusal("request-too-large", f"the body is larger than {MAX_REQUEST_BYTES:,} bytes")
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise _refusal("bad-request", "the body is incomplete")
                piece = message.get("body", b"")
                hold(len(piece))
                body += piece
                more = message.get("more_body", False)
                if len(body) > MAX_REQUEST_BYTES:
                    raise _refusal("request-too-large", f"the body is larger than {MAX_REQUEST_BYTES:,} bytes")
    except TimeoutError:
        raise _refusal("bad-request", f"the body did not arrive within {BODY_TIMEOUT_SECONDS:g} seconds") from None
    return bytes(body)


async def _is_run(path: str, body: bytes) -> bool:
    """Check the body, and return whether the request starts a program."""
    try:
        if path != MCP_PATH:
            await read_document(body or b"{}")
            return path == RUNS_PATH
        message = await read_message(body)
    except ValueError as problem:
        raise _refusal("bad-request", f"the body {problem}") from None
    return message.get("method") == "tools/call" and message.get("params", {}).get("name") not in QUICK_TOOLS


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first gives the body that was read, then what `receive` gives."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _refusal(code: str, message: str, hint: str | None = None) -> GloveportError:
    return GloveportError(message, code=code, hint=hint or CODES[code].fix)


async def _refuse(scope: Scope, send: Send, error: GloveportError, challenge: str) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),  # the rest of the body is not read
    ]
    if error.code == "unauthorized":
        headers.append((b"www-authenticate", challenge.encode()))
    if error.code in ("busy", "stopping"):
        headers.append((b"retry-after", str(RETRY_AFTER_SECONDS).encode()))
    body = orjson.dumps(problem_document(error))
    headers.append((b"content-length", str(len(body)).encode()))
    is_socket, status = scope["type"] == "websocket", http_status(error.code)
    logger.info(
        "refused %s %.100r: %d %s", "WebSocket" if is_socket else scope["method"], scope["path"], status, error.code
    )
    kind = "websocket.http.response" if is_socket else "http.response"  # before the upgrade
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
