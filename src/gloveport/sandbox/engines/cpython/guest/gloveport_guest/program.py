"""Compile the program, in whatever form the agent wrote it, and make a coroutine that runs it."""

from __future__ import annotations
import __future__

import ast
import inspect
import io
import linecache
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .errors import PROGRAM

AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
STAR = "\0star"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def compile_program(text: str, tail: int | None = None) -> list[CodeType]:
    """Return code objects to run in order; the value of the last one is the result. It raises like `compile`.

    `tail` is the first line of an expression at the end, 0 if there is none, None if that is not known.
    """
    lines = io.StringIO(text, newline=None).readlines()  # as the compiler counts them: a form feed does not end a line
    linecache.cache[PROGRAM] = (len(text), None, lines, PROGRAM)  # for tracebacks and `inspect`
    if tail is not None:
        try:
            return _compile_lines(lines, tail)
        except SyntaxError:  # a top-level `return`, or brackets around the expression
            pass
    tree = ast.parse(text, PROGRAM)
    if any(isinstance(node, ast.Return) for node in _own_nodes(tree.body)):
        return [_as_function(tree)]
    body, parts = tree.body, []
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    if body:
        parts.append(compile(tree, PROGRAM, "exec", AWAIT, dont_inherit=True))
    if isinstance(last, ast.Expr):
        parts.append(compile(ast.Expression(last.value), PROGRAM, "eval", AWAIT, dont_inherit=True))
    return parts


def _compile_lines(lines: list[str], tail: int) -> list[CodeType]:
    """Compile without a syntax tree, which takes a third of the time. If both parts compile, the meaning is the same."""
    if not tail:
        return [compile("".join(lines), PROGRAM, "exec", AWAIT, dont_inherit=True)]
    start, end = "".join(lines[: tail - 1]), "\n" * (tail - 1) + "".join(lines[tail - 1 :])
    parts = [compile(start, PROGRAM, "exec", AWAIT, dont_inherit=True)] if start else []
    return [*parts, compile(end, PROGRAM, "eval", AWAIT, dont_inherit=True)]


async def run_program(parts: list[CodeType], space: dict[str, Any]) -> Any:
    """Run the parts in the namespace and return the value of the last one."""
    value = None
    for code in parts:
        value = FunctionType(code, space)()
        if code.co_flags & inspect.CO_COROUTINE:
            value = await value
    return await value if inspect.isawaitable(value) else value


async def call_main(space: dict[str, Any], given: dict[str, Any]) -> Any:
    """Call the program's function with the values that it takes, by name, else in order, and return its result."""
    main = space.get("main")
    if not callable(main):
        functions = [item for item in space.values() if isinstance(item, FunctionType) and item.__globals__ is space]
        main = functions[-1]
    value = main(*_arguments(main, given))
    return await value if inspect.isawaitable(value) else value


def _arguments(main: Callable[..., Any], given: dict[str, Any]) -> list[Any]:
    rest, out = dict(given), []
    for parameter in inspect.signature(main).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return [*out, *rest.values()]
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) or not rest:
            break
        name = parameter.name if parameter.name in rest else next(iter(rest))
        out.append(rest.pop(name))
    return out


# A program with a top-level `return` becomes the body of a function. Every name that it binds is declared global, so that
# its functions and classes see each other as in a module.


def _own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of the top level, without those inside functions and classes."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def _as_function(tree: ast.Module) -> CodeType:
    flags = 0
    while tree.body and isinstance(first := tree.body[0], ast.ImportFrom) and first.module == "__future__":
        for name in first.names:
            flags |= getattr(__future__, name.name).compiler_flag if hasattr(__future__, name.name) else 0
        del tree.body[0]
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Return(tree.body[-1].value), tree.body[-1])
    names = _bound_names(tree.body)
    _adapt(tree.body)
    start = {"lineno": 1, "col_offset": 0}
    body = [*([ast.Global(sorted(names), **start)] if names else []), *tree.body]
    function = ast.AsyncFunctionDef(name="main", args=_no_arguments(), body=body, decorator_list=[], **start)
    if sys.version_info >= (3, 12):
        function.type_params = []
    code = compile(ast.Module([function], []), PROGRAM, "exec", flags, dont_inherit=True)
    inner = next(item for item in code.co_consts if isinstance(item, CodeType))
    return inner.replace(co_name="<module>", co_qualname="<module>")


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def _bound_names(body: list[ast.stmt]) -> set[str]:
    """Return the names that the top level binds."""
    names: set[str] = set()
    for node in _own_nodes(body):
        match node:
            case ast.Yield() | ast.YieldFrom():
                raise _error("'yield' outside function", node)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.Import() | ast.ImportFrom():
                names |= {item.asname or item.name.partition(".")[0] for item in node.names if item.name != "*"}
    return names


def _error(message: str, node: Any) -> SyntaxError:
    return SyntaxError(message, (PROGRAM, node.lineno, node.col_offset + 1, None))


def _adapt(body: list[Any]) -> None:
    """Rewrite in place the statements that are allowed in a module but not in a function.

    Only blocks of statements are walked, one at a time: an expression may be nested deeper than Python's stack.
    """
    waiting = [body]
    while waiting:
        block = waiting.pop()
        for index, node in enumerate(block):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                said = ast.Assign([node.target], node.value) if node.value else ast.Pass()
                block[index] = ast.copy_location(said, node)
            elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                call = ast.Call(ast.Name(STAR, ast.Load()), [ast.Constant(node.module or "")], [])
                block[index] = ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))
            elif not isinstance(node, SCOPES):  # other scopes stay as they are
                waiting += [inner for name in BLOCKS if (inner := getattr(node, name, None))]


def make_space(text: str) -> dict[str, Any]:
    """Return the namespace of the program, that of a new module `__main__`."""
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    space = vars(module)
    space["__file__"] = PROGRAM
    space["__builtins__"] = sys.modules["builtins"]

    def star(name: str) -> None:
        found = __import__(name, space, space, ["*"])
        names = getattr(found, "__all__", None) or [item for item in vars(found) if not item.startswith("_")]
        space.update({item: getattr(found, item) for item in names})

    if "*" in text:
        space[STAR] = star
    return space
