"""What a person should look at in a Python program: its tree, step by step, for `data_flow`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from gloveport.advice import ProgramFinding
from gloveport.prepare.data_flow import NOWHERE, DataFlow, Part, Steps, find_in
from gloveport.prepare.python.parser import LineIndex, children, parse_again
from gloveport.types import Program

_LOADERS = frozenset({"__import__", "importlib.import_module", "import_module"})


def find_findings(program: Program) -> tuple[ProgramFinding, ...]:
    """Return what a person should look at in a program."""
    lines = LineIndex(program.code)
    return find_in(parse_again(program.code), program, lambda flow: _PythonSteps(flow).parts, lines.start)


def _name(node: ast.Attribute | ast.Subscript) -> str:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
    return name if isinstance(name, str) else "*"


def _chain(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        parts.append(_name(node))
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


class _PythonSteps:
    """Reports each node of a tree to the flow, and gives its parts in the order in which they are evaluated."""

    def __init__(self, flow: DataFlow) -> None:
        self.flow = flow
        self._takes: dict[type, Steps] = {
            ast.Name: lambda node: flow.use(node.id) if type(node.ctx) is ast.Load else None,
            ast.Constant: lambda node: flow.text(node.value) if isinstance(node.value, str) else None,
            ast.FormattedValue: lambda node: [node.value, partial(flow.text, "")],
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.comprehension: lambda node: [*self._bound(node.iter, node.target), *node.ifs],
            ast.DictComp: lambda node: [*node.generators, node.key, node.value],
            ast.withitem: lambda node: self._bound(node.context_expr, node.optional_vars),
            ast.Import: lambda node: self._import(node, *(alias.name for alias in node.names)),
            ast.ImportFrom: lambda node: self._import(node, node.module or ""),
            **dict.fromkeys((ast.Attribute, ast.Subscript), self._member),
            **dict.fromkeys((ast.For, ast.AsyncFor), self._for),
            ast.Assign: lambda node: self._bound(node.value, *node.targets),
            ast.AugAssign: lambda node: self._bound(node.value, node.target, adds=True),
            **dict.fromkeys((ast.AnnAssign, ast.NamedExpr), lambda node: self._bound(node.value, node.target)),
            **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp), lambda node: [*node.generators, node.elt]),
            **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda), self._function),
        }

    def parts(self, node: ast.AST) -> Sequence[Part] | None:
        take = self._takes.get(type(node))
        return take(node) if take else children(node)

    def _call(self, node: ast.Call) -> list[Part]:
        callee = _chain(node.func)
        if callee in _LOADERS and not all(isinstance(each, ast.Constant) for each in node.args[:1]):
            self.flow.report("computed-import", node, callee.partition(".")[0])
        given = [*node.args, *(word.value for word in node.keywords)]
        return [node.func, *given, partial(self.flow.call, callee, self.flow.now, node)]

    def _bound(self, value: ast.AST | None, *targets: ast.AST | None, adds: bool = False) -> list[Part]:
        names, members, pending = list[str](), list[ast.AST](), [*targets]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name):
                names.append(node.id)
            elif isinstance(node, ast.Attribute | ast.Subscript):
                members.append(node)
            elif node is not None:
                pending += children(node)
        start, roots = self.flow.now, [_chain(member).partition(".")[0] for member in members]
        steps = [partial(self.flow.bind, names, start, adds=adds), partial(self.flow.bind, roots, start, adds=True)]
        return [*members, value, *steps]

    def _binary(self, node: ast.BinOp) -> list[Part]:
        goes_on = isinstance(node.right, ast.Constant)  # the URL, in `"https://x" + "?q=" + value`
        return [node.left, node.right, None if goes_on else partial(self.flow.text, "")]

    def _member(self, node: ast.Attribute | ast.Subscript) -> list[Part]:
        self.flow.attribute(_name(node), node)
        return [node.value, getattr(node, "slice", None)]

    def _for(self, node: ast.For | ast.AsyncFor) -> list[Part]:
        return [*self._bound(node.iter, node.target), *node.body, *node.orelse]

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[Part]:
        given = node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        self.flow.bind([*names, getattr(node, "name", "")], NOWHERE)
        return [*given.defaults, *([node.body] if isinstance(node, ast.Lambda) else node.body)]

    def _import(self, node: ast.AST, *modules: str) -> None:
        if any(module.partition(".")[0] == "ctypes" for module in modules):
            self.flow.report("native-code", node)
