"""One endpoint of the API: who may use it, what it takes, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.responses import Response

from gloveport.errors import CODES, GloveportError
from gloveport.store.tokens import Role
from gloveport.surfaces.http.token import Caller

Schema = Mapping[str, Any]
AGENTS: frozenset[Role] = frozenset({"agent", "host", "admin"})
PEOPLE: frozenset[Role] = frozenset({"approver", "admin"})
EVERYBODY: frozenset[Role] = AGENTS | PEOPLE
ADMINS: frozenset[Role] = frozenset({"admin"})
MONITORS: frozenset[Role] = frozenset({"approver", "admin", "monitor"})


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request, checked: its caller, the parts of its path, its query and its body."""

    caller: Caller
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ApiReply:
    """The answer to a request: a JSON document, and its status. `version` changes when the document does."""

    document: Mapping[str, Any]
    status: int = 200
    version: str | None = None


Handler = Callable[[ApiCall], Awaitable[ApiReply | Response]]


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """A method of a path. `query` and `body` are JSON schemas; `answers` has that of the document for each status,
    None where there is no document.

    `media` is the type of the answer, `needs` the parameters of the query that must be given.
    """

    method: str
    path: str
    roles: frozenset[Role]
    summary: str
    handler: Handler
    answers: Mapping[int, Schema | None]
    query: Mapping[str, Schema] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    body: Schema | None = None
    media: str = "application/json"


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON. Lone surrogates, which JavaScript strings may have, become U+FFFD."""
    try:
        return orjson.dumps(document)
    except TypeError:
        from gloveport.surfaces.agents.tools import replace_surrogates

        return orjson.dumps(replace_surrogates(dict(document)))


async def versioned(call: ApiCall, version: str, load: Callable[[], Awaitable[Mapping[str, Any]]]) -> ApiReply:
    """Return the document that `load` returns; only its version (304) to a caller who has it, without loading it."""
    if call.headers.get("if-none-match") == f'"{version}"':
        return ApiReply({}, 304, version)
    return ApiReply(await load(), version=version)


def no_such(what: str, id: str) -> GloveportError:
    """Return the error for something that is not there, or that belongs to somebody else (M11)."""
    return GloveportError(
        f"there is no {what} {id[:64]!r}", code="not-found", hint=f"list those that you may see at /v1/{what}s"
    )


def forbidden(message: str) -> GloveportError:
    """Return the error for something that the role of the caller does not allow."""
    return GloveportError(message, code="forbidden", hint=CODES["forbidden"].fix)
