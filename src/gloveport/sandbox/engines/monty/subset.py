"""The part of Python that Monty has. What it lacks is refused before the run, or rewritten.

Monty has no exceptions with fields or causes, no subscripts of host objects, no `return_exceptions`, and accepts no
coroutine as a result. So code that catches or raises `ToolError`, a class of the prelude, is rewritten to call functions of
the prelude; `tools["a"]` becomes `getattr`; `"a" in tools` asks for its names; a result that may be awaitable is awaited.
Everything else stays as the agent wrote it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from gloveport.prepare.call_check import TOOLS
from gloveport.prepare.positions import Edit
from gloveport.prepare.python.foreign_names import bound_names
from gloveport.prepare.python.parser import LineIndex
from gloveport.prepare.python.survey import PythonSurvey, place_of
from gloveport.prepare.subset import UnsupportedNode

_MODULES = """
    __future__ __main__ asyncio base64 binascii bisect collections copy csv dataclasses datetime decimal functools hashlib
    itertools json math os os.path pathlib posixpath random re sys time tomllib typing unicodedata
"""
MODULES = frozenset(_MODULES.split())
"""The modules that Monty 1.4 has."""

_MISSING_BUILTINS = """
    BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError
    ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError
    ExceptionGroup FloatingPointError FutureWarning GeneratorExit IOError ImportWarning IndentationError InterruptedError
    PendingDeprecationWarning ProcessLookupError ReferenceError ResourceWarning RuntimeWarning StopAsyncIteration
    SyntaxWarning SystemError TabError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning Warning aiter anext
    ascii breakpoint bytearray callable classmethod compile delattr dir globals help issubclass memoryview staticmethod
    super vars
"""
MISSING_BUILTINS = frozenset(_MISSING_BUILTINS.split())
"""Python's own names that Monty 1.4 does not have."""

IN_ASYNCIO = frozenset({"gather", "run", "sleep"})
HINT = "the engine `cpython` has it; where you can name no engine, do without it"
AWAITABLE = (ast.Call, ast.Name)
_LINKS = (ast.Attribute, ast.Subscript)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SETTLED, CAUGHT, RAISED, FAILED = (f"_gloveport_{name}" for name in ("settled", "caught", "raised", "failed"))
CAUSED, SEEN, ISINSTANCE, GATHER = (f"_gloveport_{name}" for name in ("caused", "seen", "isinstance", "gather"))
WALKERS = frozenset({"list", "sorted", "set", "tuple", "enumerate", "iter"})
WIDE = frozenset({"ToolError", "Exception", "BaseException"})
ENTRY, NAMES = "_gloveport_main", "gloveport__names"


class MontySubset:
    """A part of Python, with the rest refused or rewritten."""

    engine = "monty"
    hint = HINT

    @property
    def node_kinds(self) -> tuple[type, ...]:
        """The kinds of nodes that the functions below examine."""
        return KINDS

    def find_unsupported(self, found: PythonSurvey, tree: ast.Module) -> UnsupportedNode | None:
        """Return the first thing in a program that Monty is known not to have."""
        return first_unsupported(found.nodes, tree, found.imports)

    def edits(self, found: PythonSurvey, tree: ast.Module, code: str) -> list[Edit]:
        """Return the changes that make a program run in Monty."""
        return edits(found.nodes, tree, code)

    def entry_calls(self, tree: ast.Module, function: str) -> str:
        """Return a line that says how the program's function is called: without an input, and with one."""
        return entry_calls(tree, function)


Nodes = dict[type, list[Any]]
"""The relevant nodes of a program, by kind."""


def _bound(nodes: Nodes, tree: ast.Module) -> set[str]:
    """Return the names that the program binds anywhere."""
    names = {node.id for node in nodes[ast.Name] if not isinstance(node.ctx, ast.Load)}
    return names.union(*(bound_names(node) for node in ast.walk(tree)))


def first_unsupported(nodes: Nodes, tree: ast.Module, imports: list[ast.Import | ast.ImportFrom]) -> UnsupportedNode | None:
    """Return the first thing in a program that Monty is known not to have."""
    found = [UnsupportedNode(node, what) for kind, what in _WORDS.items() for node in nodes[kind]]
    found += [UnsupportedNode(node, what) for kind, look in _LOOKS.items() for node in nodes[kind] if (what := look(node))]
    found += [UnsupportedNode(node, f"module `{name}`") for node in imports for name in _missing(node)]
    names = [node for node in nodes[ast.Name] if node.id in MISSING_BUILTINS]
    bound = _bound(nodes, tree) if names else set[str]()
    found += [UnsupportedNode(node, f"`{node.id}`") for node in names if node.id not in bound]
    return min(found, key=lambda one: place_of(one.node)) if found else None


def _class(node: ast.ClassDef) -> str | None:
    if node.bases or node.keywords:
        return "class inheritance, nor metaclasses"
    if any(getattr(item, "decorator_list", ()) for item in node.body):
        return "decorators of methods (`@property`, `@staticmethod`, `@classmethod`)"
    return None


def _import_from(node: ast.ImportFrom) -> str | None:
    if node.names[0].name == "*":
        return "`from … import *`"
    missing = [alias.name for alias in node.names if node.module == "asyncio" and alias.name not in IN_ASYNCIO]
    return f"`asyncio.{missing[0]}`" if missing else None


def _of_asyncio(node: ast.Attribute) -> str | None:
    if isinstance(node.value, ast.Name) and node.value.id == "asyncio" and node.attr not in IN_ASYNCIO:
        return f"`asyncio.{node.attr}`"
    return None


def _comprehension(node: ast.comprehension) -> str | None:
    return "asynchronous comprehensions" if node.is_async else None


_WORDS: dict[type, str] = {
    ast.Yield: "generators (`yield`)",
    ast.YieldFrom: "generators (`yield from`)",
    ast.Delete: "`del`",
    ast.AsyncWith: "`async with`",
    ast.AsyncFor: "`async for`",
    ast.TryStar: "`except*`",
    **({ast.TypeAlias: "type aliases (`type X = …`)"} if sys.version_info >= (3, 12) else {}),
}
_LOOKS: dict[type, Callable[[Any], str | None]] = {
    ast.ClassDef: _class,
    ast.ImportFrom: _import_from,
    ast.Attribute: _of_asyncio,
    ast.comprehension: _comprehension,
}
KINDS = (*_WORDS, *_LOOKS, ast.Name, ast.ExceptHandler, ast.Raise, ast.Subscript, ast.Call, ast.Compare, ast.For)
"""The relevant kinds of nodes."""


def _missing(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return [name for name in names if name not in MODULES]


def edits(nodes: Nodes, tree: ast.Module, code: str) -> list[Edit]:
    """Return the changes that make a program run in Monty."""
    lines = LineIndex(code)
    # Where several insertions share a place, the outermost comes first.
    out = [edit for value in _results(tree) for edit in _wrapped(value, f"await {SETTLED}", lines)]
    for node in nodes[ast.ExceptHandler]:
        out += _handler(node, lines, code)
    for node in nodes[ast.Raise]:
        out += _raise(node, lines, code)
    has_steps = "step" in code and any(node.id == "step" for node in nodes[ast.Name])
    if "isinstance" in code or "return_exceptions" in code or has_steps:
        out += [edit for node in nodes[ast.Call] for edit in _call(node, lines, has_steps)]
    if any(name in code for name in TOOLS):
        out += _on_tools(nodes, lines)
    return out


def _on_tools(nodes: Nodes, lines: LineIndex) -> Iterator[Edit]:
    names = TOOLS.difference(node.id for node in nodes[ast.Name] if not isinstance(node.ctx, ast.Load))
    for node in nodes[ast.Subscript]:
        if _root(node) in names:
            yield from _attribute(node, lines)
    for node in _walked(nodes):
        if _root(node) in names:
            yield Edit(lines.end(node), lines.end(node), f".{NAMES}")


def _wrapped(node: ast.AST, function: str, lines: LineIndex) -> list[Edit]:
    start, end = lines.start(node), lines.end(node)
    return [Edit(start, start, f"{function}("), Edit(end, end, ")")]


def _handler(node: ast.ExceptHandler, lines: LineIndex, code: str) -> Iterator[Edit]:
    names = [part for part in _nodes_of(node.type) if isinstance(part, ast.Name)]
    for part in names:
        if part.id == "ToolError":
            yield Edit(lines.start(part), lines.end(part), FAILED)
    name = node.name
    if not name and _swallows(node, names):
        name, end = SEEN, lines.end(node.type) if node.type else lines.start(node) + len("except")
        colon = code.index(":", end)
        if "#" in code[end:colon]:
            return
        yield Edit(colon, colon, f" as {SEEN}" if node.type else f" BaseException as {SEEN}")
    if name:
        first = lines.start(node.body[0])
        line, _ = lines.line(lines.number(first))
        margin = code[line:first]
        # The body may begin with a compound statement, which must start its line.
        between = f"\n{margin}" if not margin.strip() else "; "
        yield Edit(first, first, f"{name} = {CAUGHT}({name}){between}")


def _swallows(node: ast.ExceptHandler, names: list[ast.Name]) -> bool:
    """Return whether a handler without a name may catch a failed call, which the program has then seen."""
    passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
    return not passes_on and (node.type is None or any(part.id in WIDE for part in names))


def _raise(node: ast.Raise, lines: LineIndex, code: str) -> Iterator[Edit]:
    if node.exc is None:
        return
    if _repeatable(node.cause):
        start, end = lines.start(node.exc), lines.end(node.exc)
        yield Edit(start, start, f"{CAUSED}(")
        yield Edit(end, end, f", {code[lines.start(node.cause) : lines.end(node.cause)]})")
    elif _may_be_ours(node.exc):
        yield from _wrapped(node.exc, RAISED, lines)


def _repeatable(cause: ast.expr | None) -> TypeGuard[ast.expr]:
    """Return whether the cause of an exception can be evaluated twice: a name, or an exception of constants."""
    if isinstance(cause, ast.Call) and not cause.keywords:
        return isinstance(cause.func, ast.Name) and all(isinstance(arg, ast.Constant) for arg in cause.args)
    return isinstance(cause, ast.Name)


def _call(node: ast.Call, lines: LineIndex, has_steps: bool) -> Iterator[Edit]:
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
            if any(isinstance(part, ast.Name) and part.id in WIDE for part in ast.walk(kind)):
                yield Edit(lines.start(node.func), lines.end(node.func), ISINSTANCE)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="asyncio"), attr="gather"),
            keywords=[] | [ast.keyword("return_exceptions")] as options,
        ) if options or has_steps:
            yield Edit(lines.start(node.func), lines.end(node.func), f"{GATHER}_steps" if has_steps else GATHER)


def _walked(nodes: Nodes) -> Iterator[ast.expr]:
    """Yield the expressions that a program iterates over or searches for a name."""
    yield from (node.iter for kind in (ast.For, ast.comprehension) for node in nodes[kind])
    for node in nodes[ast.Call]:
        if isinstance(node.func, ast.Name) and node.func.id in WALKERS:
            yield from node.args[:1]
    for node in nodes[ast.Compare]:
        yield from (at for op, at in zip(node.ops, node.comparators, strict=True) if isinstance(op, (ast.In, ast.NotIn)))


def _nodes_of(node: ast.expr | None) -> Iterator[ast.AST]:
    return ast.walk(node) if node is not None else iter(())


def _may_be_ours(raised: ast.expr) -> bool:
    """Return whether the raised value may be a ToolError: it is not a built-in exception."""
    named = raised.func if isinstance(raised, ast.Call) else raised
    known = getattr(builtins, named.id, None) if isinstance(named, ast.Name) else None
    return not (isinstance(known, type) and issubclass(known, BaseException))


def _root(node: ast.AST) -> str | None:
    """Return the name that a path of attributes and subscripts begins with."""
    while isinstance(node, _LINKS):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _attribute(node: ast.Subscript, lines: LineIndex) -> Iterator[Edit]:
    start = lines.start(node)
    yield Edit(start, start, "getattr(")
    yield Edit(lines.end(node.value), lines.start(node.slice), ", ")
    yield Edit(lines.end(node.slice), lines.end(node), ")")


def _results(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the results of a program that may be awaitable: its last expression, and what its top level returns."""
    pending: list[Any] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return) and isinstance(node.value, AWAITABLE):
            yield node.value
        elif not isinstance(node, _SCOPES):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                pending += getattr(node, name, ())
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, AWAITABLE):
        yield last.value


def entry_calls(tree: ast.Module, name: str) -> str:
    """Return a line that defines how the program's function is called: without an input, and with one."""
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
    """Return the arguments that the function takes, by name, else in order."""
    out, rest = [], list(given)
    for parameter in [*arguments.posonlyargs, *arguments.args]:
        if rest:
            out.append(rest.pop(rest.index(parameter.arg) if parameter.arg in rest else 0))
    return [*out, *rest] if arguments.vararg else out


SUBSET = MontySubset()
