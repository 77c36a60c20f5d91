"""What is wrong with a program that nobody runs yet: for editors, from the same checks that stand before a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gloveport.catalog import Catalog
from gloveport.errors import ProgramError
from gloveport.host.program_reader import ProgramReader
from gloveport.host.runs.run_request import RunRequest
from gloveport.host.source_set import SourceSet
from gloveport.host.type_check import TypeChecks


@dataclass(frozen=True, slots=True)
class ProgramProblem:
    """What is wrong at a place (1-based, in characters) of a program. A program with one that `stops` it does not start."""

    line: int
    column: int
    message: str
    code: str
    hint: str | None
    stops: bool


class ProgramChecks:
    """Checks programs as a run does before it starts. Without type checkers, it checks their syntax and their calls."""

    def __init__(
        self,
        programs: ProgramReader,
        types: TypeChecks | None,
        sources: SourceSet,
        catalog_of: Callable[[RunRequest], Awaitable[Catalog | None]],
    ) -> None:
        self._programs = programs
        self._types = types
        self._sources = sources
        self._catalog_of = catalog_of

    async def problems(self, request: RunRequest) -> tuple[ProgramProblem, ...]:
        """Return the problems of a program, the one that stops it first."""
        try:
            program, _ = await self._programs.prepare_run(request, self._sources, lambda: self._catalog_of(request))
        except ProgramError as error:
            return (_problem(error),)
        catalog = await self._catalog_of(request)
        if self._types is None or catalog is None:
            return ()
        report = await self._types.check(program, catalog, request)
        stopping = () if report.error is None else (_problem(report.error),)
        advice = (ProgramProblem(*one, code="type-error", hint=None, stops=False) for one in report.advice)
        return (*stopping, *advice)


def _problem(error: ProgramError) -> ProgramProblem:
    return ProgramProblem(error.line or 1, error.column or 1, error.message, error.code, error.hint, stops=True)
