"""The services behind the sources, on loopback: each tells in its answers whatever it was sent."""

from __future__ import annotations

import gzip
import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from graphql import build_schema, graphql_sync

from tests.canaries import hostile_mcp

WAYS = ("header", "query", "cookie", "basic", "bearer", "oauth", "openid")
MANNERS = ("echo", "text", "packed", "fail", "redirect", "away", "broken", "large", "slow")
SCHEMES: dict[str, dict[str, Any]] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://example.org/token", "scopes": {}}}},
    "openid": {"type": "openIdConnect", "openIdConnectUrl": "https://example.org/.well-known/openid-configuration"},
}
LOOKED_AT = "/echo/header"
SDL = "type Query { echo: String fail: String boom: Int } type Mutation { write: String }"


def definition(*, schemes: bool) -> dict[str, Any]:
    """The OpenAPI document: an operation for each manner of telling, and each way of sending a credential."""
    paths: dict[str, Any] = {}
    for way in WAYS if schemes else ("plain",):
        security = {"security": [{way: []}]} if schemes else {}
        answers = {"responses": {"200": {"description": "What it was sent."}}, **security}
        for manner in MANNERS:
            paths[f"/{manner}/{way}"] = {"get": {"operationId": f"{manner}_{way}", **answers}}
        paths[f"/write/{way}"] = {"post": {"operationId": f"write_{way}", **answers}}
    components = {"components": {"securitySchemes": SCHEMES}} if schemes else {}
    return {"openapi": "3.1.0", "info": {"title": "Hostile", "version": "1"}, "paths": paths, **components}


class Services:
    """Every service at one address: `received` is all that they were sent; `on_look` is called while `LOOKED_AT` is.

    They refuse the access token `refused`; `/token` answers with `tokens`.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.on_look: Callable[[], None] = lambda: None
        self.over = threading.Event()
        self.origin = ""
        self.refused = ""
        self.tokens: dict[str, str] = {}


@contextmanager
def serving() -> Iterator[Services]:
    """The services, until the block ends."""
    services = Services()

    class Handler(_Handler):
        known = services

    server = _Server(("127.0.0.1", 0), Handler)
    services.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield services
    finally:
        services.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that has read enough of a large answer goes away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    known: Services

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.known.received.append(f"{self.requestline}\n{self.headers}".encode("latin-1") + body)
        path = urlsplit(self.path).path
        if path == LOOKED_AT:
            self.known.on_look()
        if self._credential() and self._credential() == self.known.refused:
            self._send(401, self._told().encode())
        elif path == "/openapi.json":
            self._send(200, json.dumps(definition(schemes=False)).encode())
        elif path == "/graphql":
            self._send(200, self._graphql(json.loads(body)))
        elif path == "/mcp":
            self._mcp(json.loads(body) if body else {}, self._credential())
        elif path == "/quiet":
            self._mcp(json.loads(body) if body else {}, "nothing")
        else:
            getattr(self, f"_{path.split('/')[1]}", self._fail)()

    do_POST = do_DELETE = do_GET

    def _told(self) -> str:
        """All that came with the request, in every form that an honest debugging page may show it."""
        lines = [self.path, *(f"{name}: {value}" for name, value in self.headers.items())]
        values = [*lines, *self.headers.values(), self._credential()]
        encoded = [form for line in values for form in (quote(line, safe=""), b64encode(line.encode()).decode())]
        return json.dumps([*lines, *encoded, "\n".join(lines).encode("latin-1").hex()])

    def _credential(self) -> str:
        """The secret as it was sent."""
        headers = self.headers
        authorization = headers.get("Authorization", "").partition(" ")[2]
        cookie = headers.get("Cookie", "").partition("=")[2]
        query = unquote(urlsplit(self.path).query.partition("key=")[2])
        return authorization or headers.get("X-Key") or cookie or query

    def _echo(self) -> None:
        self._send(200, self._told().encode())

    def _text(self) -> None:
        self._send(200, b"{" + self._told().encode())

    def _packed(self) -> None:
        self._send(200, gzip.compress(self._told().encode()), ("Content-Encoding", "gzip"))

    def _fail(self) -> None:
        self._send(500, self._told().encode())

    def _token(self) -> None:
        self._send(200, json.dumps({**self.known.tokens, "token_type": "Bearer"}).encode())

    def _quietly(self) -> None:
        self._send(500, b"no")

    def _write(self) -> None:
        self._send(200, b'"a write came through"')

    def _redirect(self) -> None:
        query = urlsplit(self.path).query
        self._send(302, b"", ("Location", f"/echo/back?was={quote(self._credential(), safe='')}&{query}"))

    def _away(self) -> None:
        self._send(302, self._told().encode(), ("Location", f"http://{self._credential()}.invalid/x"))

    def _broken(self) -> None:
        self._send(200, self._told().encode(), ("Content-Length", "1000000"))
        self.close_connection = True

    def _large(self) -> None:
        self._send(200, self._told().encode() * 2000)

    def _slow(self) -> None:
        self._send(200, self._told().encode(), ("Content-Length", "1000000"))
        self.known.over.wait()
        self.close_connection = True

    def _graphql(self, request: dict[str, Any]) -> bytes:
        def fail(*_: Any) -> str:
            raise ValueError(self._told())

        root = {"echo": lambda *_: self._told(), "fail": fail, "boom": lambda *_: "no number: " + self._told()}
        answer = graphql_sync(build_schema(SDL), request["query"], root, variable_values=request.get("variables"))
        return json.dumps({**answer.formatted, "extensions": {"seen": self._told()}}).encode()

    def _mcp(self, message: dict[str, Any], secret: str) -> None:
        name = message.get("params", {}).get("name") if message.get("method") == "tools/call" else None
        reply = hostile_mcp.answer(message, secret)
        if name == "die":
            self._send(500, self._told().encode())
        elif name == "slow":
            self._slow()
        elif reply is None:
            self._send(202 if self.command == "POST" else 405, b"")
        else:
            self._send(200, json.dumps(reply).encode())

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        quiet = self.path.startswith("/quiet")
        self.send_response(status, "As Told" if quiet else self._credential().encode("ascii", "replace").decode()[:100])
        echoed = () if quiet else (("X-Echo", self._told()), ("Set-Cookie", f"was={self._credential()}"))
        fixed = (("Content-Type", "application/json"), ("Content-Length", str(len(body))))
        for header, value in dict((*fixed, *echoed, *headers)).items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest's own output is read by people."""
