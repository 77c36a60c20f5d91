"""What `prepare` must know about an engine that lacks a part of its language. Engines implement these Protocols."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from gloveport.prepare.positions import Edit
    from gloveport.prepare.python.survey import PythonSurvey
    from gloveport.prepare.typescript.source_text import SourceText


class ScriptSubset(Protocol):
    """An engine for JavaScript without a compiler for TypeScript: `prepare` erases the types for it."""

    def refuse_unsupported(self, source_text: SourceText) -> None:
        """Raise ProgramError for the first thing in a program that the engine is known not to have."""
        ...

    def suits(self, source_text: SourceText) -> bool:
        """Return whether a program comes to the same in the engine as in a complete one, and is likely to be no slower."""
        ...


class UnsupportedNode(NamedTuple):
    """Something that an engine does not have, and where the program uses it."""

    node: ast.AST
    what: str


class PythonSubset(Protocol):
    """An engine that has a part of Python. `node_kinds` are the kinds of nodes that it wants collected."""

    engine: str
    hint: str
    node_kinds: tuple[type, ...]

    def find_unsupported(self, found: PythonSurvey, tree: ast.Module) -> UnsupportedNode | None:
        """Return the first thing in a program that the engine is known not to have."""
        ...

    def edits(self, found: PythonSurvey, tree: ast.Module, code: str) -> list[Edit]:
        """Return the changes that make the program run in the engine."""
        ...

    def entry_calls(self, tree: ast.Module, function: str) -> str:
        """Return the line to add that says how the program's entry function is called."""
        ...


Subset = ScriptSubset | PythonSubset
