"""Type-check a program against the declarations of the tools that it mentions, before it runs."""

from __future__ import annotations

import logging

from gloveport.catalog import Catalog
from gloveport.catalog.declarations import declarations
from gloveport.errors import SandboxError
from gloveport.prepare import TypeReport, check_types
from gloveport.sandbox.type_checkers import TypeChecker, python_launch, typescript_launch
from gloveport.types import Language, Program, Strength

logger = logging.getLogger("gloveport")


class TypeChecks:
    """One warm checker for each language. A program still runs when its checker is missing or too slow."""

    def __init__(self, minimum: Strength) -> None:
        self._minimum: Strength = minimum
        self._checkers: dict[Language, TypeChecker] = {}

    async def check(self, program: Program, catalog: Catalog) -> TypeReport:
        """Return what is wrong with the program's types."""
        header = declarations(catalog, program.code, program.language)
        try:
            findings = await self._checker(program.language).check(header + program.code)
        except (SandboxError, TimeoutError) as error:
            logger.warning("the type check was skipped: %s", str(error) or "it took too long")
            return TypeReport()
        return check_types(program, catalog, findings, header.count("\n"))

    async def close(self) -> None:
        """Stop the checkers."""
        checkers, self._checkers = list(self._checkers.values()), {}
        for checker in checkers:
            await checker.close()

    def _checker(self, language: Language) -> TypeChecker:
        if language not in self._checkers:
            launch = python_launch() if language == "python" else typescript_launch()
            language_id = "python" if language == "python" else "typescript"
            self._checkers[language] = TypeChecker(launch, language=language_id, minimum=self._minimum)
        return self._checkers[language]
