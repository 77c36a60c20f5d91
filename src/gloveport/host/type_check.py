"""Type-check a program against the declarations of the tools that it mentions, before it runs."""

from __future__ import annotations

import logging

from gloveport.catalog import Catalog
from gloveport.catalog.declarations import declarations, known_declarations, mentions_types
from gloveport.errors import SandboxError
from gloveport.host.program_reader import ProgramReader
from gloveport.host.runs.run_request import RunRequest
from gloveport.large_values import LARGE_BYTES, off_loop, off_loop_if
from gloveport.prepare import TypeReport
from gloveport.prepare.type_findings import IMPORT_DECLARATIONS, has_irrelevant_code
from gloveport.sandbox.type_checkers import TypeCheckers, python_launch, typescript_launch
from gloveport.types import Language, Program, Strength

logger = logging.getLogger("gloveport")


class TypeChecks:
    """Warm checkers for each language, one for an agent. A program still runs when its checker is missing or too slow."""

    def __init__(self, minimum: Strength, programs: ProgramReader) -> None:
        self._minimum: Strength = minimum
        self._programs = programs
        self._checkers: dict[Language, TypeCheckers] = {}
        self._missing: set[Language] = set()  # the languages whose checker is not installed, once that was logged

    async def check(self, program: Program, catalog: Catalog, request: RunRequest) -> TypeReport:
        """Return what is wrong with the program's types.

        Callers often bring tools without types. A program that mentions no others can't be refused, so it is not checked.
        """
        large = len(program.code) > LARGE_BYTES
        if request.tools is not None and not await off_loop_if(large, mentions_types, catalog, program.code):
            return TypeReport()
        header = None if large else known_declarations(catalog, program.code, program.language)
        if header is None:
            header = await off_loop(declarations, catalog, program.code, program.language)
        if program.imports:
            header += IMPORT_DECLARATIONS
        try:
            checkers = self._of(program.language)
        except SandboxError as error:
            self._warn_once(program.language, error)
            return TypeReport()
        try:
            findings = await checkers.check(request.agent, header + program.code)
        except (SandboxError, TimeoutError) as error:
            logger.warning("the type check was skipped: %s", str(error) or "it took too long")
            return TypeReport()
        lines_before = header.count("\n")  # most findings are there, or about names that nothing uses
        findings = [one for one in findings if one.line > lines_before and not has_irrelevant_code(one.code)]
        return await self._programs.report_types(
            program,
            findings,
            lines_before,
            subset=request.subset,
            max_code_bytes=request.limits.max_code_bytes,
            catalog=catalog,
            agent=request.agent,
        )

    async def advise(self, program: Program, catalog: Catalog, request: RunRequest) -> tuple[str, ...]:
        """Return advice on the program's types; raise ProgramError for what can't work."""
        report = await self.check(program, catalog, request)
        if report.error is not None:
            raise report.error
        return tuple(map(str, report.advice))

    async def close(self) -> None:
        """Stop the checkers."""
        checkers, self._checkers = list(self._checkers.values()), {}
        for checker in checkers:
            await checker.close()

    def _warn_once(self, language: Language, error: SandboxError) -> None:
        if language not in self._missing:
            self._missing.add(language)
            fix = f"; `{error.hint}` installs it" if error.hint else ""
            logger.warning("types of programs in %s are not checked: %s%s", language, error, fix)

    def _of(self, language: Language) -> TypeCheckers:
        checked: Language = "python" if language == "python" else "typescript"  # JavaScript is checked as TypeScript
        if checked not in self._checkers:
            launch = python_launch() if checked == "python" else typescript_launch()
            self._checkers[checked] = TypeCheckers(launch, language=checked, minimum=self._minimum)
        return self._checkers[checked]
