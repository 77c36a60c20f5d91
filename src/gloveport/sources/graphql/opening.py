"""Opens a GraphQL endpoint: reads its schema, by introspection or from a file, and compiles it."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from graphql import get_introspection_query

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.egress.urls import shown
from gloveport.sources.context import SourceContext
from gloveport.sources.graphql.call.endpoint import Endpoint
from gloveport.sources.graphql.call.response import error_rows, read_body
from gloveport.sources.graphql.compile.definition import JSON_LIMITS, MAX_JSON_BYTES, read_schema
from gloveport.sources.graphql.source import GraphQLSource

# The second is for servers of the 2018 specification, which has no deprecated arguments.
INTROSPECTIONS = (get_introspection_query(input_value_deprecation=True, one_of=True), get_introspection_query())
GIVE_A_FILE = 'give its schema as a file (SDL or introspection JSON) instead, and the endpoint as base_url = "https://…"'


async def open_graphql(config: SourceConfig, context: SourceContext) -> GraphQLSource:
    """Return a source for the endpoint or schema file that the settings name; raise SourceError."""
    location = config.location if isinstance(config.location, str) else " ".join(config.location)
    if location.startswith(("http://", "https://")):
        endpoint = Endpoint(config.base_url or location, config, context)
        raw = await _introspect(Endpoint(location, config, context), config.name)
    else:
        if not config.base_url:
            hint = 'add base_url = "https://…", the URL that queries are sent to'
            raise SourceError(f"source {config.name}: {location} doesn't say where its endpoint is", hint=hint)
        endpoint = Endpoint(config.base_url, config, context)
        raw = await asyncio.to_thread(_read, config.name, location)
    return await asyncio.to_thread(build_source, config, raw, location, endpoint)


def build_source(config: SourceConfig, raw: bytes, location: str, endpoint: Endpoint) -> GraphQLSource:
    """Return the source for a schema as bytes, read from `location`; raise SourceError."""
    schema = read_schema(raw, config.name, location)
    try:
        return GraphQLSource(config, schema, endpoint)
    except (RecursionError, SourceError) as error:
        problem = error.message if isinstance(error, SourceError) else "types are nested too deeply"
        raise SourceError(f"source {config.name}: {location}: {problem}", hint="correct the definition") from None


def _read(source: str, location: str) -> bytes:
    try:
        # O_NONBLOCK: a pipe that nobody writes to would block this thread, and the process at its end, for ever.
        descriptor = os.open(Path(location).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(MAX_JSON_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"source {source}: {location} can't be read: {problem}", hint="check the path") from None
    raise SourceError(f"source {source}: {location} is no plain file", hint="check the path")


async def _introspect(endpoint: Endpoint, source: str) -> bytes:
    """Return the endpoint's answer to an introspection query."""
    problem = "it gave no schema"
    for query in INTROSPECTIONS:
        try:
            reply = await endpoint.send(query, {})
            body = read_body(reply, JSON_LIMITS)
        except ToolError as error:
            raise SourceError(f"source {source}: {shown(endpoint.url)}: {error.message}", hint=error.hint) from None
        if body is None:
            moved = reply.headers.get("location")
            hint = f"it points to {moved}" if moved else "check that the URL is that of a GraphQL endpoint"
            raise SourceError(f"source {source}: {shown(endpoint.url)} answered {reply.status}, not GraphQL", hint=hint)
        if not body.get("errors"):
            return reply.body
        problem = error_rows(body["errors"])[0]["message"]
    raise SourceError(f"source {source}: {shown(endpoint.url)} does not give its schema: {problem}", hint=GIVE_A_FILE)
