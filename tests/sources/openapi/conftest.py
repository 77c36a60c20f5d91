"""A recording server, and a kit that creates sources which call it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sources.openapi.support import Kit, Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, server: Server) -> AsyncIterator[Kit]:
    made = Kit(tmp_path, server)
    yield made
    await made.close()
