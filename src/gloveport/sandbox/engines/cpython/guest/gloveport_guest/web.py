"""`fetch` and `urllib.request`: each request is a call of the host, which decides on it, makes it and records it.

Redirects are followed here, with a call for each, so that no address is reached that was not decided on.
"""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import io
import json as json_module
import urllib.error
import urllib.request
import urllib.response
from collections.abc import Iterator, Mapping
from email.message import Message
from http.client import HTTPMessage
from typing import Any
from urllib.parse import urlencode

from .errors import ToolError
from .tools import Calls
from .values import quote

READS = frozenset({"GET", "HEAD", "OPTIONS"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 20
CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
# urllib sets these itself; the host does, too, and refuses them from a caller.
SET_BY_HOST = frozenset({"host", "connection", "content-length", "accept-encoding", "transfer-encoding"})


class Headers(Mapping[str, str]):
    """The headers of a response. Names are found in any case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in given.items()}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({self._values!r})"


class Response:
    """What a server answered: `status`, `ok`, `reason`, `headers`, `url`, `redirected`, and the whole `body` as bytes."""

    def __init__(self, reply: dict[str, Any], redirected: bool) -> None:
        self.status: int = reply["status"]
        self.ok = 200 <= self.status < 300
        self.reason: str = reply["reason"]
        self.headers = Headers(reply["headers"])
        self.url: str = reply["url"]
        self.redirected = redirected
        self.body = _body(reply)

    def text(self) -> str:
        """Return the body as text."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        try:
            return self.body.decode(message.get_content_charset("utf-8"), "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the value that the body is the JSON of."""
        return json_module.loads(self.body)

    def __repr__(self) -> str:
        return f"<Response {self.status} {self.url}>"


class RequestError(ToolError, urllib.error.URLError):
    """A request of `urllib` that was refused or failed: a ToolError, and the error that programs expect of `urllib`."""

    def __init__(self, error: ToolError) -> None:
        ToolError.__init__(self, error.message, **error.fields())
        self.reason = error.message
        self.filename = None

    def __str__(self) -> str:
        return self.message


RequestError.__name__ = RequestError.__qualname__ = "ToolError"


class Web:
    """The requests of one program."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def fetch(
        self,
        url: str,
        *,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | Mapping[str, Any] | None = None,
        json: Any = None,
        redirect: str = "follow",
    ) -> Response:
        """Make a request and return its Response. `json` is sent as JSON, and a mapping as a form.

        `redirect` is "follow", "manual" (return the redirect) or "error".
        """
        sent = {str(name).lower(): str(value) for name, value in (headers or {}).items()}
        if json is not None:
            body = json_module.dumps(json)
            sent.setdefault("content-type", "application/json")
        elif isinstance(body, Mapping):
            body = urlencode(body, doseq=True)
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        args = _arguments(method or ("GET" if body is None else "POST"), str(url), sent, body)
        for followed in range(MAX_REDIRECTS + 1):
            tool = _tool(args)
            reply = await self._calls.make(tool, quote(tool), (args,), {})
            location = reply.get("location") if reply["status"] in REDIRECTS else None
            if location is None or redirect == "manual":
                return Response(reply, followed > 0)
            if redirect == "error":
                raise ValueError(f"fetch failed: {reply['url']} redirects to {location}")
            args = _redirected(args, reply, location)
        raise ValueError(f"fetch failed: more than {MAX_REDIRECTS} redirects")

    def open(self, request: urllib.request.Request) -> urllib.response.addinfourl:
        """Make a request of `urllib`. The whole guest waits for it."""
        headers = {**request.unredirected_hdrs, **request.headers}
        sent = {name.lower(): str(value) for name, value in headers.items() if name.lower() not in SET_BY_HOST}
        args = _arguments(request.get_method(), request.full_url.partition("#")[0], sent, _bytes(request.data))
        try:
            reply = self._calls.wait(_tool(args), args)
        except ToolError as error:
            raise RequestError(error) from None
        return _OpenedReply(reply)


class _OpenedReply(urllib.response.addinfourl):
    """A reply as `urlopen` returns it."""

    def __init__(self, reply: dict[str, Any]) -> None:
        headers = HTTPMessage()
        for name, value in reply["headers"].items():
            headers[name] = value
        super().__init__(io.BytesIO(_body(reply)), headers, reply["url"], reply["status"])
        self.msg = self.reason = reply["reason"]

    def getheader(self, name: str, default: str | None = None) -> str | None:
        return self.headers.get(name, default)

    def getheaders(self) -> list[tuple[str, str]]:
        return list(self.headers.items())


def patch_urllib(web: Web) -> None:
    """Send the requests of `urllib.request` to the host, whatever opener a program builds. Contexts of TLS are refused."""

    def opened(handler: Any, request: urllib.request.Request) -> urllib.response.addinfourl:
        context = getattr(handler, "_context", None)
        if context is not None and not context.check_hostname:
            raise ToolError("disabled TLS checks are refused: the host checks every certificate", code="egress-denied")
        return web.open(request)

    urllib.request.HTTPHandler.http_open = opened
    if hasattr(urllib.request, "HTTPSHandler"):  # some builds lack ssl
        urllib.request.HTTPSHandler.https_open = opened


def _tool(args: Mapping[str, Any]) -> str:
    return "egress.read" if args["method"] in READS else "egress.write"


def _arguments(method: str, url: str, headers: dict[str, str], body: str | bytes | None) -> dict[str, Any]:
    args: dict[str, Any] = {"method": method.upper(), "url": url, "headers": headers}
    if body is not None:
        args["body"] = _text_or_bytes(body)
    return args


def _text_or_bytes(body: str | bytes) -> str | bytes:
    """Return a body as text where it is one: a person who is asked reads that more easily than base64."""
    if isinstance(body, str):
        return body
    try:
        return bytes(body).decode()
    except UnicodeDecodeError:
        return bytes(body)


def _body(reply: Mapping[str, Any]) -> bytes:
    body = reply["body"]
    return body.encode() if isinstance(body, str) else body  # it is a text in a plan


def _bytes(data: Any) -> bytes | None:
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        return None if data is None else bytes(data)
    return data.read() if hasattr(data, "read") else b"".join(data)


def _redirected(args: dict[str, Any], reply: Mapping[str, Any], location: str) -> dict[str, Any]:
    """Return the request for the address that a redirect names, as the Fetch standard says."""
    status, method, headers = reply["status"], args["method"], args["headers"]
    if (status == 303 and method not in READS) or (status in (301, 302) and method == "POST"):
        args = {"method": "GET"}
        headers = {name: value for name, value in headers.items() if not name.startswith("content-")}
    if _origin(reply["url"]) != _origin(location):
        headers = {name: value for name, value in headers.items() if name not in CREDENTIALS}
    return {**args, "url": location, "headers": headers}


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
