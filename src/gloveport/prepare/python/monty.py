"""Python for the engine `monty`: what it does not have is refused here, and what it has no words for is said otherwise.

Monty has no exceptions with fields, no subscripts of host objects, and takes no coroutine for a result. So `ToolError`, a
class of its prelude, is led through functions of the prelude where it is caught and raised; `tools["a"]` becomes `getattr`;
and what may be awaitable at the end of a program is awaited there. Everything else stands as the agent wrote it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from gloveport.prepare.names import TOOLS
from gloveport.prepare.positions import Edit
from gloveport.prepare.python.grammar import Lines, children
from gloveport.prepare.python.names import bound_names
from gloveport.prepare.python.survey import place_of

_MODULES = """
    __future__ __main__ asyncio base64 binascii bisect collections copy csv dataclasses datetime decimal functools hashlib
    itertools json math os os.path pathlib posixpath random re sys time tomllib typing unicodedata
"""
MODULES = frozenset(_MODULES.split())
"""The modules that Monty 1.4 has."""

_LACKING = """
    BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError
    ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError
    ExceptionGroup FloatingPointError FutureWarning GeneratorExit IOError ImportWarning IndentationError InterruptedError
    PendingDeprecationWarning ProcessLookupError ReferenceError ResourceWarning RuntimeWarning StopAsyncIteration
    SyntaxWarning SystemError TabError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning Warning aiter anext
    ascii breakpoint bytearray callable classmethod compile delattr dir globals help issubclass memoryview staticmethod
    super vars
"""
LACKING = frozenset(_LACKING.split())
"""Python's own names that Monty 1.4 does not have."""

IN_ASYNCIO = frozenset({"gather", "run", "sleep"})
HINT = 'the engine `cpython` has it: run it with engine="cpython" (--engine cpython)'
AWAITABLE = (ast.Call, ast.Name)
SETTLED, CAUGHT, RAISED, FAILED = (f"_gloveport_{name}" for name in ("settled", "caught", "raised", "failed"))
ENTRY = "_gloveport_main"


class Lack(NamedTuple):
    """Something that Monty does not have, and where the program uses it."""

    node: ast.AST
    message: str


def lacking(tree: ast.Module, imports: list[ast.Import | ast.ImportFrom]) -> Lack | None:
    """The first thing in a program that Monty is known not to have."""
    nodes = list(_nodes(tree))
    bound = {name for node in nodes for name in _bound(node)}
    found = [Lack(node, f"the engine `monty` has no {what}") for node in nodes if (what := _lacks(node, bound))]
    found += [Lack(node, f"the engine `monty` has no module `{name}`") for node in imports for name in _missing(node)]
    return min(found, key=lambda lack: place_of(lack.node)) if found else None


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    return bound_names(node)


def _lacks(node: ast.AST, bound: set[str]) -> str | None:
    if type(node) in _WORDS:
        return _WORDS[type(node)]
    match node:
        case ast.Name(id=name) if name in LACKING and name not in bound:
            return f"`{name}`"
        case ast.ClassDef(bases=bases, keywords=keywords) if bases or keywords:
            return "class inheritance, nor metaclasses"
        case ast.ClassDef(body=body) if any(getattr(item, "decorator_list", ()) for item in body):
            return "decorators of methods (`@property`, `@staticmethod`, `@classmethod`)"
        case ast.comprehension(is_async=1):
            return "asynchronous comprehensions"
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return "`from … import *`"
        case ast.Attribute(value=ast.Name(id="asyncio"), attr=name) if name not in IN_ASYNCIO:
            return f"`asyncio.{name}`"
        case ast.ImportFrom(module="asyncio", names=names):
            missing = next((alias.name for alias in names if alias.name not in IN_ASYNCIO), None)
            return f"`asyncio.{missing}`" if missing else None
    return None


_WORDS: dict[type, str] = {
    ast.Yield: "generators (`yield`)",
    ast.YieldFrom: "generators (`yield from`)",
    ast.Delete: "`del`",
    ast.AsyncWith: "`async with`",
    ast.AsyncFor: "`async for`",
    ast.TryStar: "`except*`",
    getattr(ast, "TypeAlias", ast.TryStar): "type aliases (`type X = …`)",
}
_WORDS[ast.TryStar] = "`except*`"


def _missing(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return [name for name in names if name not in MODULES]


def edits(tree: ast.Module, code: str) -> list[Edit]:
    """What is said otherwise."""
    lines = Lines(code)
    # Of insertions in one place, the outermost comes first.
    out = [edit for value in _results(tree) for edit in _wrapped(value, f"await {SETTLED}", lines)]
    for node in _nodes(tree):
        match node:
            case ast.ExceptHandler():
                out += _handler(node, lines, code)
            case ast.Raise(exc=ast.expr() as raised) if _may_be_ours(raised):
                out += _wrapped(raised, RAISED, lines)
            case ast.Subscript(ctx=ast.Load()) if _on_tools(node):
                out += _attribute(node, lines)
    return out


def _wrapped(node: ast.AST, function: str, lines: Lines) -> list[Edit]:
    start, end = lines.start(node), lines.end(node)
    return [Edit(start, start, f"{function}("), Edit(end, end, ")")]


def _handler(node: ast.ExceptHandler, lines: Lines, code: str) -> Iterator[Edit]:
    for part in _nodes_of(node.type):
        if isinstance(part, ast.Name) and part.id == "ToolError":
            yield Edit(lines.start(part), lines.end(part), FAILED)
    if node.name:
        first = lines.start(node.body[0])
        line, _ = lines.line(lines.number(first))
        margin = code[line:first]
        # The body may begin with a compound statement, before which nothing can stand on its line.
        between = f"\n{margin}" if not margin.strip() else "; "
        yield Edit(first, first, f"{node.name} = {CAUGHT}({node.name}){between}")


def _nodes_of(node: ast.expr | None) -> Iterator[ast.AST]:
    return ast.walk(node) if node is not None else iter(())


def _may_be_ours(raised: ast.expr) -> bool:
    """Whether what is raised may be a ToolError: not when it is plainly an exception of Python's."""
    named = raised.func if isinstance(raised, ast.Call) else raised
    known = getattr(builtins, named.id, None) if isinstance(named, ast.Name) else None
    return not (isinstance(known, type) and issubclass(known, BaseException))


def _on_tools(node: ast.Subscript) -> bool:
    root: ast.AST = node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return isinstance(root, ast.Name) and root.id in TOOLS


def _attribute(node: ast.Subscript, lines: Lines) -> Iterator[Edit]:
    start = lines.start(node)
    yield Edit(start, start, "getattr(")
    yield Edit(lines.end(node.value), lines.start(node.slice), ", ")
    yield Edit(lines.end(node.slice), lines.end(node), ")")


def _results(tree: ast.Module) -> Iterator[ast.expr]:
    """What a program gives, where that may be awaitable: its last expression, and what its top level returns."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return) and isinstance(node.value, AWAITABLE):
            yield node.value
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending += children(node)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, AWAITABLE):
        yield last.value


def entry_calls(tree: ast.Module, name: str) -> str:
    """A line that tells how the function of a program is called: without an input, and with one."""
    arguments = _parameters(tree, name)
    calls = [f"lambda: {name}({', '.join(_given(arguments, given))})" for given in (["tools"], ["input", "tools"])]
    return f"\n{ENTRY} = ({', '.join(calls)})\n"


def _parameters(tree: ast.Module, name: str) -> ast.arguments:
    found = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=defined) | ast.AsyncFunctionDef(name=defined) if defined == name:
                found = node.args
            case ast.Assign(targets=[ast.Name(id=defined)], value=ast.Lambda(args=arguments)) if defined == name:
                found = arguments
    return found


def _given(arguments: ast.arguments, given: list[str]) -> list[str]:
    """As much of what is given as the function takes, by name, else in order."""
    out, rest = [], list(given)
    for parameter in [*arguments.posonlyargs, *arguments.args]:
        if rest:
            out.append(rest.pop(rest.index(parameter.arg) if parameter.arg in rest else 0))
    return [*out, *rest] if arguments.vararg else out
