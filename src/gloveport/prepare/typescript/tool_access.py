"""Whether a TypeScript program can reach tools: by name, as a function's argument, or through the global scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gloveport.prepare.call_check import TOOLS
from gloveport.prepare.typescript.entry import takes_arguments
from gloveport.prepare.typescript.survey import BOUND_SHORTHAND, VARIABLES, kind_ids
from gloveport.types import ToolAccess

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

_KNOWN_GLOBALS = """
    AbortController AbortSignal AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date
    Error EvalError Event EventTarget Float32Array Float64Array Headers Infinity Int16Array Int32Array Int8Array Intl
    Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Request Response Set
    String Symbol SyntaxError TextDecoder TextEncoder ToolError TypeError URIError URL URLSearchParams Uint16Array
    Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet atob btoa clearInterval clearTimeout console crypto
    decodeURI decodeURIComponent emit encodeURI encodeURIComponent escape fetch input isFinite isNaN parseFloat parseInt
    performance queueMicrotask setInterval setTimeout step structuredClone undefined unescape
"""
KNOWN_GLOBALS = frozenset(_KNOWN_GLOBALS.split())
"""Globals that lead to no tool: our timers take no text. `globalThis`, `eval` and `Function` are not among them.

An engine may lack one of them. A source that has its name is opened all the same: the program uses that name.
"""

_BINDS = """
    array_pattern rest_pattern pair_pattern catch_clause enum_declaration function_declaration function_expression
    generator_function generator_function_declaration class class_declaration abstract_class_declaration
"""
_BINDS_FIRST = "variable_declarator required_parameter optional_parameter assignment_pattern arrow_function"
_BIND_IDS, _BIND_FIRST_IDS = kind_ids(frozenset(_BINDS.split())), kind_ids(frozenset(_BINDS_FIRST.split()))
_PATTERN_IDS, _VARIABLE_IDS = kind_ids(frozenset({BOUND_SHORTHAND})), kind_ids(VARIABLES)

_CONSTRUCTOR = re.compile(r"constructor(?!\s*\()|[.\['\"`]\s*constructor")
"""The constructor of a function, which compiles text; not the one that a class defines."""


def tool_access(source_text: SourceText, entry: str) -> ToolAccess:
    """Return which names a program uses, and whether it could reach a tool."""
    if entry == "value" or (entry == "function" and takes_arguments(source_text)):  # it is given `tools`, by whatever name
        return ToolAccess()
    source, used, bound = source_text.source, set[str](), set[str]()
    if _CONSTRUCTOR.search(source):
        return ToolAccess()
    for node, parent in source_text.found.identifiers:
        name = source[node.start_byte : node.end_byte]
        if name in bound:
            continue
        if name in TOOLS or "\\" in name:  # an escape can spell any name
            return ToolAccess()
        if _binds(node, parent):
            bound.add(name)
        elif node.kind_id in _VARIABLE_IDS:
            used.add(name)
    # A name that is used and never bound may be a source, or a tool without its path.
    return ToolAccess(frozenset(used | bound), bool(used - bound - KNOWN_GLOBALS))


def _binds(node: Node, parent: Node) -> bool:
    kind = parent.kind_id
    if kind in _BIND_IDS or node.kind_id in _PATTERN_IDS:
        return True
    if kind in _BIND_FIRST_IDS:
        return node.start_byte == parent.start_byte
    left = parent.child_by_field_name("left") if parent.type == "for_in_statement" else None
    return left is not None and left.start_byte == node.start_byte
