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
_GUEST_NAMES = frozenset({"ToolError", "__name__", "emit", "fetch", "step"})
_PLAIN_MODULES = """
    __future__ abc array asyncio base64 binascii bisect calendar cmath collections colorsys contextlib copy csv
    dataclasses datetime decimal difflib enum fractions functools hashlib heapq hmac html io itertools json keyword
    logging math numbers operator os pathlib pprint random re secrets statistics string struct textwrap time traceback
    types typing unicodedata urllib uuid warnings zlib zoneinfo
"""
PLAIN_MODULES = frozenset(_PLAIN_MODULES.split())
"""Modules whose own functions lead to no tool. A program that reaches one through what they import has to say `tools`: else
the call fails, because its source is not open."""

_PLAIN_ATTRIBUTES = frozenset({"__class__", "__doc__", "__init__", "__name__", "__str__"})


def tool_access(tree: ast.Module, names: AbstractSet[str], *, given: bool) -> ToolAccess:
    """Return whether a program that uses these names could reach a tool; with `given`, its function gets `tools`."""
    if given or not TOOLS.isdisjoint(names):
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
    return ToolAccess(frozenset(used | bound), bool(used - bound - KNOWN_BUILTINS - _GUEST_NAMES))


def _is_plain(module: str) -> bool:
    return module.partition(".")[0] in PLAIN_MODULES


def _is_internal(attribute: str) -> bool:
    if attribute.startswith("__"):
        return attribute not in _PLAIN_ATTRIBUTES
    return attribute.startswith("f_") or attribute.endswith("_frame") or attribute.strip("_") in ("sys", "builtins")


_MAY_REACH_NAMESPACE: dict[type, Callable[[Any], bool]] = {
    ast.Import: lambda node: not all(_is_plain(alias.name) for alias in node.names),
    ast.ImportFrom: lambda node: not _is_plain(node.module or "") or any(_is_internal(each.name) for each in node.names),
    ast.Attribute: lambda node: _is_internal(node.attr),
    ast.MatchClass: lambda node: node.patterns or any(_is_internal(name) for name in node.kwd_attrs),
}
"""Whether a node may lead to a namespace: by an import, or by an attribute such as `__globals__`, `f_locals` or `sys`.

The attributes that a positional class pattern reads are named by the class.
"""
