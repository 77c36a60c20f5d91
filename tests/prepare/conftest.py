"""A reader of programs that all tests of this folder share."""

from collections.abc import AsyncIterator

import pytest

from gloveport.host.program_reader import ProgramReader


@pytest.fixture(scope="session")
async def reader() -> AsyncIterator[ProgramReader]:
    programs = ProgramReader("kernel")
    yield programs
    await programs.tasks.close()
