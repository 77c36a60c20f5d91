"""GraphQL endpoints: schema → a tool for each query and mutation, and calls → documents → values."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

from graphql import get_introspection_query

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.policy.egress.urls import shown
from gloveport.sources.context import Outside
from gloveport.sources.graphql.definition import LARGEST_JSON, MOST_CONTAINERS, read_schema
from gloveport.sources.graphql.endpoint import Endpoint
from gloveport.sources.graphql.replies import read_body, trimmed
from gloveport.sources.graphql.source import GraphQLSource

__all__ = ["GraphQLSource", "open_graphql"]

# The second is for servers of the specification of 2018, which know no deprecated arguments.
INTROSPECTIONS = (get_introspection_query(input_value_deprecation=True, one_of=True), get_introspection_query())
GIVE_A_FILE = 'give its schema as a file (SDL or introspection JSON) instead, and the endpoint as base_url = "https://…"'


async def open_graphql(config: SourceConfig, outside: Outside) -> GraphQLSource:
    """A source for the endpoint or schema file that the configuration names; raises SourceError."""
    location = config.location if isinstance(config.location, str) else " ".join(config.location)
    if location.startswith(("http://", "https://")):
        endpoint = Endpoint(config.base_url or location, config, outside)
        raw = await _introspect(Endpoint(location, config, outside), config.name)
    else:
        if not config.base_url:
            hint = 'add base_url = "https://…", the URL that queries are sent to'
            raise SourceError(f"source {config.name}: {location} doesn't say where its endpoint is", hint=hint)
        endpoint = Endpoint(config.base_url, config, outside)
        raw = await asyncio.to_thread(_read, config.name, location)
    return await asyncio.to_thread(_compiled, config, raw, location, endpoint)


def _compiled(config: SourceConfig, raw: bytes, place: str, endpoint: Endpoint) -> GraphQLSource:
    schema = read_schema(raw, config.name, place)
    try:
        return GraphQLSource(config, schema, endpoint)
    except (RecursionError, SourceError) as error:
        said = error.message if isinstance(error, SourceError) else "types are nested too deeply"
        raise SourceError(f"source {config.name}: {place}: {said}", hint="correct the definition") from None


def _read(source: str, location: str) -> bytes:
    try:
        # Without waiting: a pipe that nobody writes to would hold this thread, and the process at its end, for ever.
        descriptor = os.open(Path(location).expanduser(), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(LARGEST_JSON + 1)
    except (OSError, RuntimeError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"source {source}: {location} can't be read: {said}", hint="check the path") from None
    raise SourceError(f"source {source}: {location} is no plain file", hint="check the path")


async def _introspect(endpoint: Endpoint, source: str) -> bytes:
    """The endpoint's answer about itself."""
    said = "it gave no schema"
    for query in INTROSPECTIONS:
        try:
            reply = await endpoint.send(query, {})
            body = read_body(reply, MOST_CONTAINERS)
        except ToolError as error:
            raise SourceError(f"source {source}: {shown(endpoint.url)}: {error.message}", hint=error.hint) from None
        if body is None:
            moved = reply.headers.get("location")
            hint = f"it points to {moved}" if moved else "check that the URL is that of a GraphQL endpoint"
            raise SourceError(f"source {source}: {shown(endpoint.url)} answered {reply.status}, not GraphQL", hint=hint)
        if not body.get("errors"):
            return reply.body
        said = trimmed(body["errors"])[0]["message"]
    raise SourceError(f"source {source}: {shown(endpoint.url)} does not tell its schema: {said}", hint=GIVE_A_FILE)
