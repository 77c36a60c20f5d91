"""A library's endpoint, and what a source needs to reach it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gloveport.config import SourceConfig
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.graphql.opening import open_graphql
from gloveport.sources.graphql.source import GraphQLSource
from gloveport.types import Tool
from tests.sources.graphql.server import Library, serving
from tests.sources.in_process_tasks import InProcessTasks


@pytest.fixture
def library() -> Iterator[Library]:
    with serving(Library()) as served:
        yield served


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[SourceContext]:
    egress = Egress()
    credentials = EnvironmentCredentials({}, {"GLOVEPORT_LIB_TOKEN": "canary-token"})
    yield SourceContext(egress, credentials, tmp_path, InProcessTasks())
    await egress.close()


@pytest.fixture
async def source(library: Library, outside: SourceContext) -> GraphQLSource:
    """The library, opened from its endpoint."""
    return await open_graphql(settings(f"{library.url}/graphql"), outside)


def settings(location: str | Path, **more: Any) -> SourceConfig:
    return SourceConfig("lib", "graphql", str(location), allow_private=True, **more)


def tool(source: GraphQLSource, name: str) -> Tool:
    return next(one for one in source.tools() if one.address == f"{source.name}.{name}")


async def call(source: GraphQLSource, name: str, /, **args: Any) -> Any:
    return await source.call(tool(source, name), args)
