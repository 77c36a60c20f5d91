"""The tool calls that can be read off a Python program, and only those that are certain."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from keyword import iskeyword
from typing import Any

from gloveport.prepare.argument_check import CallArguments
from gloveport.prepare.call_check import TOOLS, CallSite, CertainCalls, Chain, ToolIndex
from gloveport.prepare.python.foreign_names import BINDING, bound_names
from gloveport.prepare.python.parser import LineIndex, PythonTooDeepError, TooLargeError, children, parse_again
from gloveport.prepare.python.scopes import suppressed
from gloveport.types import Program


def certain_calls(program: Program, catalog: ToolIndex) -> CertainCalls:
    """Return the tool calls that can be read off the text."""
    roots = TOOLS | catalog.roots
    if not any(root in program.code for root in roots):
        return CertainCalls()
    try:
        tree = parse_again(program.code)
    except (SyntaxError, PythonTooDeepError, TooLargeError):
        return CertainCalls()
    found = read_calls(tree, program.code, roots)
    free = frozenset(name for name in roots if not _is_shadowed(name, found, tree, program))
    return CertainCalls(tuple(found.on(free)), found.tested)


def _is_shadowed(name: str, found: PythonCalls, tree: ast.Module, program: Program) -> bool:
    """Return whether the program binds the name itself, other than as a parameter of the entry function."""
    bound = found.bound.get(name)
    if not bound:
        return False
    if name != "tools" or program.entry != "function" or len(bound) > 1:
        return True
    return bound[0] not in _entry_parameters(tree)


def _entry_parameters(tree: ast.Module) -> list[ast.arg]:
    """Return the first two parameters of the function that the guest calls."""
    functions: dict[str, ast.arguments] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[node.name] = node.args
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
            functions[node.targets[0].id] = node.value.args
    arguments = functions.get("main") or (next(iter(functions.values())) if len(functions) == 1 else None)
    if arguments is None:
        return []
    return [*arguments.posonlyargs, *arguments.args][:2]


class CodeText:
    """The code, and where the nodes of its tree stand. Places are computed only for a message."""

    def __init__(self, code: str) -> None:
        self.code = code

    @cached_property
    def lines(self) -> LineIndex:
        """The line index of the code."""
        return LineIndex(self.code)

    def extent(self, node: ast.AST) -> tuple[int, int]:
        """Return the offsets where a node starts and ends."""
        return self.lines.start(node), self.lines.end(node)


class PythonChainPart:
    """One property of a chain, `.name` or `["name"]`."""

    __slots__ = ("_node", "_text", "name")

    def __init__(self, name: str, node: ast.Attribute | ast.Subscript, text: CodeText) -> None:
        self.name, self._node, self._text = name, node, text

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets where the name starts and ends."""
        if isinstance(self._node, ast.Subscript):
            return self._text.extent(self._node.slice)
        end = self._text.lines.end(self._node)
        return end - len(self.name), end


class PythonValue:
    """An argument as the program writes it."""

    __slots__ = ("_node", "_text", "kind", "string")

    def __init__(self, node: ast.AST, text: CodeText) -> None:
        self._node, self._text = node, text
        self.kind = _kind(node)
        value = getattr(node, "value", None)
        self.string: str | None = value if isinstance(value, str) else None

    @property
    def text(self) -> str:
        """The text of the argument."""
        start, end = self.extent
        return self._text.code[start:end]

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets where it starts and ends."""
        return self._text.extent(self._node)


class KeywordName(PythonValue):
    """The name of a keyword argument."""

    __slots__ = ()

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets where the name starts and ends."""
        start = self._text.lines.start(self._node)
        return start, start + len(getattr(self._node, "arg", None) or "")


def _kind(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        value = node.value
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "boolean"
        return "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else None
    if isinstance(node, ast.JoinedStr):
        return "string"
    return "array" if isinstance(node, ast.List) else "object" if isinstance(node, ast.Dict) else None


def _arguments(call: ast.Call, text: CodeText) -> CallArguments | None:
    """Return the arguments of a call; None when `*` or `**` hides them."""
    if any(isinstance(node, ast.Starred) for node in call.args) or any(word.arg is None for word in call.keywords):
        return None
    positional = [PythonValue(node, text) for node in call.args]
    if call.keywords:
        named = {word.arg or "": (KeywordName(word, text), PythonValue(word.value, text)) for word in call.keywords}
        return CallArguments(positional, named=named)
    single = call.args[0] if len(call.args) == 1 else None
    return CallArguments(positional, object_keys=_keys(single, text) if isinstance(single, ast.Dict) else None)


def _keys(node: ast.Dict, text: CodeText) -> dict[str, tuple[PythonValue, PythonValue]] | None:
    keys: dict[str, tuple[PythonValue, PythonValue]] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        keys[key.value] = (PythonValue(key, text), PythonValue(value, text))
    return keys


@dataclass(slots=True)
class PythonCalls:
    """What one walk over a program finds.

    `calls` leaves out those whose failure the program handles itself. `bound` maps names to the nodes that bind them.
    `tested` holds the chains that are read but not called (`hasattr(tools, "x")`). `caught` is code whose failures the
    program handles, still to be walked.
    """

    text: CodeText
    roots: frozenset[str]
    calls: list[tuple[ast.Call, Chain]] = field(default_factory=list)
    bound: dict[str, list[ast.AST]] = field(default_factory=dict)
    tested: set[tuple[str, ...]] = field(default_factory=set)
    caught: list[ast.AST] = field(default_factory=list)

    def on(self, roots: frozenset[str]) -> Iterator[CallSite]:
        """Yield the calls on some of the roots, in the order of the text."""
        for node, chain in sorted(self.calls, key=lambda pair: (pair[0].lineno, pair[0].col_offset)):
            if chain.root in roots:
                yield CallSite(chain, partial(_arguments, node, self.text), partial(self.text.extent, node))


def read_calls(tree: ast.Module, code: str, roots: frozenset[str]) -> PythonCalls:
    """Return the calls on these roots, and what is needed to check them."""
    found = PythonCalls(CodeText(code), roots)
    _walk(found, [*tree.body], certain=True)
    _walk(found, found.caught, certain=False)
    return found


def _walk(found: PythonCalls, nodes: list[Any], *, certain: bool) -> None:
    while nodes:
        node = nodes.pop()
        kind = type(node)
        if kind is ast.Name:
            if node.id in found.roots and type(node.ctx) is not ast.Load:
                found.bound.setdefault(node.id, []).append(node)
        elif kind is ast.Call:
            nodes += _take_call(found, node, certain=certain)
        elif kind in _TAKE:
            nodes += _TAKE[kind](found, node)
        else:
            nodes += children(node)


def _take_binding(found: PythonCalls, node: ast.AST) -> list[ast.AST]:
    for name in bound_names(node):
        found.bound.setdefault(name, []).append(node)
    return children(node)


def _take_catching(found: PythonCalls, node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith) -> list[ast.AST]:
    """Return the nodes below a statement that may handle failures, without the body that it handles."""
    if isinstance(node, ast.Try | ast.TryStar):
        handled = bool(node.handlers)
        rest: list[ast.AST] = [*node.handlers, *node.orelse, *node.finalbody]
    else:
        handled = any(suppressed(item.context_expr) for item in node.items)
        rest = [*node.items]
    if not handled:
        return [*rest, *node.body]
    found.caught += node.body
    return rest


def _take_call(found: PythonCalls, node: ast.Call, *, certain: bool) -> list[ast.AST]:
    arguments: list[ast.AST] = [*node.args, *(keyword.value for keyword in node.keywords)]
    chain = _chain(found, node.func)
    if chain:
        if certain:
            found.calls.append((node, chain))
        return arguments
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in {"hasattr", "getattr"}:
        _take_test(found, node)
    elif name == "gather" and any(word.arg == "return_exceptions" for word in node.keywords):
        found.caught += arguments
        return [node.func]
    return [node.func, *arguments]


def _take_chain(found: PythonCalls, node: ast.Attribute | ast.Subscript) -> list[ast.AST]:
    chain = _chain(found, node)
    if chain is None:
        return children(node)
    found.tested.add(chain.names)
    return []


def _take_test(found: PythonCalls, node: ast.Call) -> None:
    """Note the name in `hasattr(tools.github, "x")` and `getattr(tools, "x", None)`."""
    if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
        return
    inner = _chain(found, node.args[0])
    if inner or getattr(node.args[0], "id", "") in found.roots:
        found.tested.add((*(inner.names if inner else ()), str(node.args[1].value)))


def _take_in(found: PythonCalls, node: ast.Compare) -> list[ast.AST]:
    """Note the name in `"x" in tools` and `"x" in dir(tools)`."""
    if isinstance(node.left, ast.Constant) and isinstance(node.ops[0], ast.In | ast.NotIn):
        found.tested.add((str(node.left.value),))
    return [node.left, *node.comparators]


def _chain(found: PythonCalls, node: ast.AST) -> Chain | None:
    """Return the chain that an expression spells out on one of the roots; None if it is computed."""
    parts: list[PythonChainPart] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
        if not isinstance(name, str) or name.startswith("__") or (name.endswith("_") and iskeyword(name[:-1])):
            return None
        parts.append(PythonChainPart(name, node, found.text))
        node = node.value
    if not parts or not isinstance(node, ast.Name) or node.id not in found.roots:
        return None
    return Chain(node.id, tuple(reversed(parts)))


_TAKE: dict[type, Callable[[PythonCalls, Any], list[ast.AST]]] = {
    **dict.fromkeys((ast.Attribute, ast.Subscript), _take_chain),
    **dict.fromkeys((ast.Try, ast.TryStar, ast.With, ast.AsyncWith), _take_catching),
    **dict.fromkeys(BINDING, _take_binding),
    ast.Compare: _take_in,
}
