"""The result of one walk over a program's tree, and the scope of each piece of code."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scope(NamedTuple):
    """The scope of a piece of code.

    `kind` is `module`, `def`, `async`, `lambda`, `class` or `comprehension`. `awaits` states whether `await` is allowed,
    `loop` whether `break` is, `optional` whether a failing import is expected. `outer` is the enclosing scope.
    """

    kind: str
    node: ast.AST | None
    awaits: bool
    outer: Scope | None = None
    loop: bool = False
    optional: bool = False


class PlacementFault(NamedTuple):
    """Code that is not allowed where it stands."""

    node: ast.AST
    message: str
    hint: str | None


@dataclass(slots=True)
class PythonSurvey:
    """What one walk over a program finds: faults in no particular order, and the imports that have to succeed."""

    faults: list[PlacementFault] = field(default_factory=list)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    optional_imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    futures: list[ast.ImportFrom] = field(default_factory=list)
    declared: list[tuple[ast.Global | ast.Nonlocal, Scope]] = field(default_factory=list)
    groups: list[tuple[list[ast.AST], Scope]] = field(default_factory=list)
    nodes: dict[type, list[Any]] = field(default_factory=dict)  # of the kinds that were asked for
    names: set[str] = field(default_factory=set)  # of variables, other than in the annotations of functions

    def fail(self, node: ast.AST, message: str, hint: str | None = None) -> None:
        """Note a fault."""
        self.faults.append(PlacementFault(node, message, hint))

    def enter(self, nodes: list[ast.AST] | list[ast.stmt] | list[ast.expr], scope: Scope) -> None:
        """Walk these nodes later, in another scope."""
        self.groups.append((list(nodes), scope))


def place_of(node: ast.AST) -> tuple[int, int]:
    """Return the line and the column of a node, for finding the first of several."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
