"""The built-in source behind `fetch` of a program: one request for each call, with no credential and no cookie.

It follows no redirect. The guest does, with a call of its own for each: so every address is decided on, recorded and, where
the rules ask, approved like the first one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.policy.egress import Reach, Request
from gloveport.types import FETCH_KIND, FETCH_TOOLS, Tool
from gloveport.urls import Url

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

READ_METHODS = ("GET", "HEAD", "OPTIONS")
PRIVATE_HINT = "ask the user whether fetch may reach this address"
_ABOUT = "The built-in tool behind fetch: makes one HTTP request"


def _schema(method: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "method": {"type": "string", **method},
            "url": {"type": "string"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "body": {"type": "string"},
        },
        "required": ["method", "url"],
        "additionalProperties": False,
    }


# A plan makes up the reply to a write from it: a success, whose body is a text.
_REPLY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer", "default": 200},
        "reason": {"type": "string", "default": "OK"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": "string"},
        "url": {"type": "string"},
    },
    "required": ["status", "reason", "headers", "body", "url"],
}

# Two tools, so that whether a call writes is a fact about the tool: records, plans and repeats depend on it.
READ = Tool(FETCH_TOOLS[0], f"{_ABOUT} that only reads.", _schema({"enum": list(READ_METHODS)}), _REPLY, kind=FETCH_KIND)
WRITE = Tool(FETCH_TOOLS[1], f"{_ABOUT} that may write.", _schema({"maxLength": 32}), _REPLY, kind=FETCH_KIND, writes=True)
TOOLS = {READ.address: READ, WRITE.address: WRITE}

ReachesPrivate = Callable[[Url, str], bool]


class FetchClient:
    """The HTTP client of `fetch`, made at the first request: loading its libraries takes longer than a step may."""

    def __init__(self, egress: Egress | None = None) -> None:
        self._egress = egress

    async def get(self) -> Egress:
        """Return the client."""
        if self._egress is None:
            made = await asyncio.to_thread(_make_egress)
            self._egress = self._egress or made
        return self._egress

    async def close(self) -> None:
        """Close its connections."""
        if self._egress is not None:
            await self._egress.close()


def _make_egress() -> Egress:
    from gloveport.policy.egress.client import Egress

    return Egress()


class FetchSource:
    """The requests of one agent's programs. `reaches_private` says which of them may go to private addresses."""

    name = "egress"
    attributes_errors: Literal[True] = True

    def __init__(self, client: FetchClient, reaches_private: ReachesPrivate) -> None:
        self._client = client
        self._reaches_private = reaches_private

    def tools(self) -> Sequence[Tool]:
        """Return the two tools, for requests that read and for those that write."""
        return tuple(TOOLS.values())

    async def call(self, tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
        """Return the status, the headers and the body of the reply; for a redirect also the address that it names."""
        url, method, body = urls.parse(args["url"]), args["method"], args.get("body")
        # A reach names its origin only where it is private: those are few, and each reach has connections of its own.
        private = self._reaches_private(url, method)
        reach = Reach(frozenset({url.origin}), allow_private=True) if private else Reach()
        content = body.encode("utf-8", "replace") if isinstance(body, str) else body
        request = Request(method, str(url), tuple(args.get("headers", {}).items()), content, follow=False)
        egress = await self._client.get()
        try:
            reply = await egress.send(request, reach)
        except ToolError as error:
            raise _for_fetch(error, url) from None
        found: dict[str, Any] = {
            "status": reply.status,
            "reason": _reason(reply.status),
            "headers": dict(reply.headers),
            "body": reply.body,
            "url": reply.url,
        }
        return found if reply.location is None else {**found, "location": reply.location}

    async def close(self) -> None:
        """Do nothing: the client belongs to the port."""


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _for_fetch(error: ToolError, url: Url) -> ToolError:
    """Return the error with what its reader can do about it here: the advice of egress is about sources."""
    hint, setting = error.hint, None
    if error.code == "egress-denied" and error.setting:
        hint = PRIVATE_HINT
        origin = f"{url.scheme}://{url.bracketed_host}:{url.port}"
        setting = f'to allow it, add [[egress]] with allow = "{origin}" and allow_private = true to gloveport.toml'
    return ToolError(error.message, code=error.code, retryable=error.retryable, hint=hint, setting=setting)
