"""Whether a Python program can reach tools: by name, as a function's argument, or through modules and frames."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from gloveport.prepare.call_check import TOOLS
from gloveport.prepare.python.foreign_names import BINDING, bound_names
from gloveport.prepare.python.parser import children
from gloveport.types import ToolAccess

_NAMESPACE_BUILTINS = """
    breakpoint compile copyright credits delattr eval exec exit getattr globals help license locals open quit setattr vars
"""
KNOWN_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) - set(_NAMESPACE_BUILTINS.split())
"""Python's own names that lead to no tool: none of them evaluates text or looks up names."""


def tool_access(tree: ast.Module, names: AbstractSet[str], *, is_function: bool) -> ToolAccess:
    """Return whether a program that uses these names could reach a tool. The entry function gets `tools` as an argument."""
    if is_function or not TOOLS.isdisjoint(names):
        return ToolAccess()
    used, bound = set[str](), set[str]()
    pending: list[Any] = [*tree.body]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is ast.Name:
            (used if type(node.ctx) is ast.Load else bound).add(node.id)
        elif kind in _MAY_REACH_NAMESPACE and _MAY_REACH_NAMESPACE[kind](node):
            return ToolAccess()
        else:
            if kind in BINDING:
                bound.update(bound_names(node))
            pending += children(node)
    return ToolAccess(frozenset(used | bound), bool(used - bound - KNOWN_BUILTINS))


def _is_internal(attribute: str) -> bool:
    return attribute.startswith(("_", "f_")) or attribute.endswith("_frame")


_MAY_REACH_NAMESPACE: dict[type, Callable[[Any], bool]] = {
    ast.Import: lambda node: True,
    ast.ImportFrom: lambda node: True,
    ast.Attribute: lambda node: _is_internal(node.attr),
    ast.MatchClass: lambda node: node.patterns or any(_is_internal(name) for name in node.kwd_attrs),
}
"""Whether a node may lead to a namespace: by an import, or by an attribute such as `__globals__` or `f_locals`.

The attributes that a positional class pattern reads are named by the class.
"""
