"""Opens a GraphQL endpoint: reads its schema, by introspection or from a file, and has it compiled by a task."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import msgspec

from gloveport import bounded_json
from gloveport.config import SourceConfig
from gloveport.errors import SourceError, TooComplexError, ToolError
from gloveport.policy.egress import Reply
from gloveport.sources.context import SourceContext
from gloveport.sources.definition_cache import DefinitionCache, digest
from gloveport.sources.graphql.call.endpoint import Endpoint
from gloveport.sources.graphql.call.response import error_rows
from gloveport.sources.graphql.introspection import INTROSPECTIONS
from gloveport.sources.graphql.row_check import CheckedRows
from gloveport.sources.graphql.rows import COMPILER_VERSION
from gloveport.sources.graphql.source import GraphQLSource
from gloveport.types import MIB
from gloveport.urls import shown

COMPILE_TASK = "gloveport.sources.graphql.compile.task:compile_schema_text"
MAX_SCHEMA_FILE_BYTES = 32 * MIB
# An endpoint that gives no schema answers with a few errors. A larger reply goes to the task without being read here.
MAX_ERROR_BYTES = MIB
ERROR_LIMITS = bounded_json.JsonLimits(containers=10_000, items=50_000)
GIVE_A_FILE = 'give its schema as a file (SDL or introspection JSON) instead, and the endpoint as base_url = "https://…"'


async def open_graphql(config: SourceConfig, context: SourceContext) -> GraphQLSource:
    """Return a source for the endpoint or schema file that the settings name; raise SourceError."""
    location = config.location if isinstance(config.location, str) else " ".join(config.location)
    remote = location.startswith(("http://", "https://"))
    if remote:
        endpoint = Endpoint(config.base_url or location, config, context)
        raw = await _introspect(Endpoint(location, config, context), config.name)
    else:
        if not config.base_url:
            hint = 'add base_url = "https://…", the URL that queries are sent to'
            raise SourceError(f"source {config.name}: {location} doesn't say where its endpoint is", hint=hint)
        endpoint = Endpoint(config.base_url, config, context)
        raw = await asyncio.to_thread(_read, config.name, location)
    try:
        cache = await _compiled(raw, "reply" if remote else "file", context)
    except SourceError as error:
        message = f"source {config.name}: {shown(location) if remote else location}: {error.message}"
        raise SourceError(message, code=error.code, hint=error.hint) from None
    return await asyncio.to_thread(GraphQLSource, config, cache, endpoint)


async def _compiled(raw: bytes, form: str, context: SourceContext) -> DefinitionCache:
    """Return the compiled form of a schema: from the cache, or else compiled by a task and checked here."""
    key = await asyncio.to_thread(digest, COMPILER_VERSION, form.encode(), raw)
    cache = await asyncio.to_thread(DefinitionCache.open, context.cache, key)
    if cache is not None:
        return cache
    try:
        batches = await context.tasks.run(COMPILE_TASK, [msgspec.json.encode({"form": form}), raw])
    except TooComplexError as error:
        hint = "use a part of the schema, or get it again from where it came from"
        raise SourceError(error.message, code="definition-too-complex", hint=hint) from None
    checked = CheckedRows(batches)
    return await asyncio.to_thread(
        DefinitionCache.build, context.cache, key, checked.heads(), checked.definitions(), (), checked.facts
    )


def _read(source: str, location: str) -> bytes:
    try:
        # O_NONBLOCK: a pipe that nobody writes to would block this thread, and the process at its end, for ever.
        descriptor = os.open(Path(location).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(MAX_SCHEMA_FILE_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"source {source}: {location} can't be read: {problem}", hint="check the path") from None
    raise SourceError(f"source {source}: {location} is no plain file", hint="check the path")


class _ErrorReply(msgspec.Struct):
    """The errors of a reply; the data is skipped."""

    errors: object = None
    data: msgspec.Raw = msgspec.Raw(b"null")


async def _introspect(endpoint: Endpoint, source: str) -> bytes:
    """Return the endpoint's answer to an introspection query."""
    problem = "it gave no schema"
    for query in INTROSPECTIONS:
        try:
            reply = await endpoint.send(query, {})
        except ToolError as error:
            code = error.code if error.code == "auth-required" else None
            message = f"source {source}: {shown(endpoint.url)}: {error.message}"
            raise SourceError(message, code=code, hint=error.advice) from None
        errors = _errors(reply)
        if errors is None:
            moved = reply.headers.get("location")
            hint = f"it points to {moved}" if moved else "check that the URL is that of a GraphQL endpoint"
            if reply.status == 403:
                hint = f"{hint}; if it wants a credential, {endpoint.wanted}"
            raise SourceError(f"source {source}: {shown(endpoint.url)} answered {reply.status}, not GraphQL", hint=hint)
        if not errors:
            return reply.body
        problem = error_rows(errors)[0]["message"]
    raise SourceError(f"source {source}: {shown(endpoint.url)} does not give its schema: {problem}", hint=GIVE_A_FILE)


def _errors(reply: Reply) -> object | None:
    """Return the errors of a reply, empty where it has data instead; None where it is not GraphQL."""
    if len(reply.body) > MAX_ERROR_BYTES:
        return ()
    try:
        bounded_json.check(reply.body, ERROR_LIMITS)
        found = msgspec.json.decode(reply.body, type=_ErrorReply)
    except bounded_json.JsonLimitError:
        return ()
    except (ValueError, RecursionError):
        return None
    return found.errors or (() if bytes(found.data).lstrip().startswith(b"{") else None)
