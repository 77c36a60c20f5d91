"""How a Python program gives its result: by running its body, or by calling the one function that it defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gloveport.prepare.python.parser import children

Function = ast.FunctionDef | ast.AsyncFunctionDef


def entry_function(tree: ast.Module, code: str) -> str | None:
    """Return the name of the function to call in a program of definitions: `main`, or the only function.

    None for any other program, and when the program refers to the function itself (a `main()` at its end).
    """
    if not tree.body or ("def" not in code and "lambda" not in code):
        return None
    if isinstance(tree.body[-1], ast.Expr) or not all(_defines(statement) for statement in tree.body):
        return None
    functions = {name: node for node in tree.body for name in [_function_name(node)] if name}
    name = "main" if "main" in functions else next(iter(functions)) if len(functions) == 1 else None
    if name is None or _is_referred(tree, name, functions[name], code):
        return None
    return name


def takes_arguments(tree: ast.Module, name: str) -> bool:
    """Return whether the entry function takes arguments, so that it is given `tools`."""
    given = (node.value if isinstance(node, ast.Assign) else node for node in tree.body if _function_name(node) == name)
    return any(not isinstance(each, Function | ast.Lambda) or any(vars(each.args).values()) for each in given)


def guarded_result(tree: ast.Module) -> ast.expr | None:
    """Return the last expression in a final `if __name__ == "__main__":` block; its value is the program's result."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.If) or last.orelse or not isinstance(last.body[-1], ast.Expr):
        return None
    match last.test:
        case ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]):
            return last.body[-1].value
        case ast.Compare(ast.Constant("__main__"), [ast.Eq()], [ast.Name("__name__")]):
            return last.body[-1].value
    return None


def _defines(statement: ast.stmt) -> bool:
    """Return whether a statement only binds names: an import, a definition, an assignment, a docstring."""
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If):
            pending += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            pending += [*node.body, *node.orelse, *node.finalbody]
            pending += [inner for handler in node.handlers for inner in handler.body]
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str | type(...)):
                return False
        elif not isinstance(node, _DEFINITIONS):
            return False
    return True


_DEFINITIONS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.Pass,
    ast.Global,
    getattr(ast, "TypeAlias", ast.Pass),
)


def _function_name(statement: ast.stmt) -> str | None:
    if isinstance(statement, Function):
        return statement.name
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _is_referred(tree: ast.Module, name: str, definition: ast.stmt, code: str) -> bool:
    """Return whether a name is used outside its own definition."""
    if len(re.findall(rf"\b{re.escape(name)}\b", code)) == 1:
        return False
    return any(isinstance(node, ast.Name) and node.id == name for node in _outside(tree, definition))


def _outside(tree: ast.Module, definition: ast.stmt) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [node for node in tree.body if node is not definition]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)
