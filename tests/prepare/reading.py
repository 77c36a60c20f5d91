"""Programs read as a port reads them: in the jailed process, within its budget."""

from __future__ import annotations

from gloveport.catalog import Catalog
from gloveport.errors import ProgramError
from gloveport.host.program_reader import ProgramReader
from gloveport.sources.functions import functions
from gloveport.types import Language

SIZE = 1 << 20


def ping() -> None:
    """Do nothing."""


CATALOG = Catalog([functions([ping])])


async def outcome(reader: ProgramReader, text: str, language: Language) -> str:
    """Return how the program of a text is entered, or its error."""
    try:
        program = await reader.prepare(
            text[:SIZE], language=language, max_code_bytes=SIZE, catalog=CATALOG, agent="default"
        )
    except ProgramError as error:
        assert error.frame or error.code in {"code-too-large", "program-too-complex"}
        return f"{error.code}: {error.message}"
    return program.entry
