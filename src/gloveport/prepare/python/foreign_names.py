"""Names of other languages that a program uses and never defines: `null`, `true`, `undefined`."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from gloveport.prepare.python.parser import children

FOREIGN = {"null": "None", "undefined": "None", "true": "True", "false": "False"}
_MENTIONED = re.compile(r"\b(?:null|undefined|true|false)\b")
_DYNAMIC = re.compile(r"\b(?:exec|globals|vars|builtins|__builtins__|setattr)\b|\bimport\s*\*")


class ForeignName(NamedTuple):
    """A name that would be a `NameError`, and what to write instead."""

    node: ast.Name
    message: str
    hint: str


def foreign_name(tree: ast.Module, code: str) -> ForeignName | None:
    """Return the first use of such a name, if nothing in the program could define it."""
    if not any(name in code for name in FOREIGN) or not _MENTIONED.search(code) or _DYNAMIC.search(code):
        return None
    uses: list[ast.Name] = []
    bound: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if node.id in FOREIGN:
                bound.add(node.id) if not isinstance(node.ctx, ast.Load) else uses.append(node)
        else:
            bound.update(bound_names(node))
            if not isinstance(node, ast.Try | ast.TryStar):
                pending += children(node)
                continue
            pending += [*node.handlers, *node.orelse, *node.finalbody]
            pending += [] if node.handlers else node.body
    uses = [node for node in uses if node.id not in bound]
    if not uses:
        return None
    first = min(uses, key=lambda node: (node.lineno, node.col_offset))
    written = FOREIGN[first.id]
    return ForeignName(first, f"there is no `{first.id}` in Python", f"write `{written}`; read JSON text with `json.loads`")


def bound_names(node: ast.AST) -> list[str]:
    """Return the names that a node of one of the `BINDING` kinds binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    name = getattr(node, BINDING.get(type(node), ""), None)
    return [name] if name else []


BINDING: dict[type, str] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler), "name"),
    **dict.fromkeys((ast.MatchAs, ast.MatchStar), "name"),
    **dict.fromkeys((ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal), "names"),
    **{getattr(ast, kind): "name" for kind in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, kind)},
    ast.MatchMapping: "rest",
    ast.arg: "arg",
}
"""The kinds of nodes that bind names, other than `Name` itself, and the field that holds the name."""
