"""`global` and `nonlocal` that come too late, or name nothing."""

from __future__ import annotations

import ast

from gloveport.prepare.python.foreign_names import bound_names
from gloveport.prepare.python.parser import children
from gloveport.prepare.python.survey import Function, Scope, Survey, place_of

Uses = dict[str, tuple[tuple[int, int], bool]]
"""The names that a function or the top level uses itself: where first, and whether it binds them anywhere."""


def check_declarations(found: Survey, tree: ast.Module) -> None:
    """Note each `global` and `nonlocal` that comes too late or names nothing."""
    known: dict[ast.AST, Uses] = {}
    for node, scope in found.declared:
        word = type(node).__name__.lower()
        uses = _uses(scope.node or tree, known)
        for name in node.names:
            if name in uses and uses[name][0] < place_of(node):
                found.fail(node, f"`{word} {name}` after the name was used", f"write it before the first use of `{name}`")
            elif word == "nonlocal" and not name.startswith("__") and not _is_in_function(name, scope, known):
                hint = f"write `global {name}` for a name of the top level"
                found.fail(node, f"`nonlocal {name}`: no function around this one has that name", hint)


def _is_in_function(name: str, scope: Scope, known: dict[ast.AST, Uses]) -> bool:
    outer = scope.outer
    while outer is not None:
        if isinstance(outer.node, Function) and _uses(outer.node, known).get(name, (None, False))[1]:
            return True
        outer = outer.outer
    return False


def _uses(owner: ast.AST, known: dict[ast.AST, Uses]) -> Uses:
    if owner in known:
        return known[owner]
    uses = known[owner] = {}
    body = getattr(owner, "body", [])
    pending: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    if isinstance(owner, Function):
        pending.append(owner.args)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            _note(uses, node.id, node, binds=not isinstance(node.ctx, ast.Load))
        elif not isinstance(node, ast.Global | ast.Nonlocal):
            for name in bound_names(node):
                _note(uses, name, node, binds=True)
        if not isinstance(node, Function | ast.ClassDef):
            pending += children(node)
    return uses


def _note(uses: Uses, name: str, node: ast.AST, *, binds: bool) -> None:
    place = place_of(node)
    first, bound = uses.get(name, (place, False))
    uses[name] = (min(first, place), bound or binds)
