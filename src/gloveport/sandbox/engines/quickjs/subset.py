"""What QuickJS lacks of JavaScript's platform, and which programs it suits.

A program that names something that it lacks is refused before the run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gloveport.errors import ProgramError
from gloveport.prepare.typescript.erasure import CODE, HINT
from gloveport.prepare.typescript.survey import kind_ids, walk
from gloveport.prepare.typescript.workload import computes_little

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

_MISSING_GLOBALS = """
    AbortController AbortSignal Blob Buffer ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy CryptoKey
    CustomEvent DecompressionStream ErrorEvent Event EventTarget File FormData Headers Intl MessageEvent
    ReadableByteStreamController ReadableStream ReadableStreamBYOBReader ReadableStreamBYOBRequest
    ReadableStreamDefaultController ReadableStreamDefaultReader Request Response Temporal TextDecoderStream
    TextEncoderStream TransformStream TransformStreamDefaultController URL URLPattern URLSearchParams WebAssembly
    WritableStream WritableStreamDefaultController WritableStreamDefaultWriter
"""
MISSING_GLOBALS = frozenset(_MISSING_GLOBALS.split())
"""Globals that the engine `deno` has and `quickjs` does not."""

MISSING_METHODS = frozenset({"toLocaleString", "toLocaleDateString", "toLocaleTimeString"})
"""Methods that need locale data, which `quickjs` does not have."""

_OTHER_GLOBALS = """
    ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array DOMException DataView DisposableStack
    FinalizationRegistry Float16Array Float32Array Float64Array Function Int16Array Int32Array Int8Array Iterator Proxy
    Reflect RegExp SuppressedError Symbol TextDecoder TextEncoder Uint16Array Uint32Array Uint8Array Uint8ClampedArray
    WeakMap WeakRef WeakSet arguments atob btoa clearImmediate clearInterval crypto decodeURI decodeURIComponent encodeURI
    encodeURIComponent escape eval fetch files global globalThis navigator performance process require self
    setImmediate setInterval state step structuredClone unescape window
"""
OTHER_GLOBALS = frozenset(_OTHER_GLOBALS.split())
"""Globals of both engines that may differ, or that are for computing."""

OTHER_PROPERTIES = frozenset({"constructor", "__proto__", "localeCompare", "match", "matchAll", "normalize", "stack"})
"""Properties that may differ, or that take much longer."""

_UNCOMMON = MISSING_GLOBALS | MISSING_METHODS | OTHER_GLOBALS | OTHER_PROPERTIES
_INEXACT = re.compile(
    r"\bMath\b(?!\s*\.\s*(?:abs|ceil|floor|max|min|random|round|sign|sqrt|trunc)\b)|(?<!/)\*\*(?!/)|\.toString\(\s*[^\s)]"
)
_SORT = re.compile(r"\.(?:sort|toSorted)\(([^\n]*)")
_COMPARES = re.compile(r"[<>{]")
_WORD = re.compile(r"[\w$]+")
_MISSING = (*sorted(MISSING_GLOBALS | MISSING_METHODS), "subtle")
_NAMES = frozenset({"identifier", "shorthand_property_identifier"})
_BINDS = frozenset(
    {
        "variable_declarator",
        "function_declaration",
        "class_declaration",
        "required_parameter",
        "optional_parameter",
        "enum_declaration",
        "catch_clause",
        "array_pattern",
        "rest_pattern",
        "assignment_pattern",
    }
)


_NAME_KIND_IDS = kind_ids(_NAMES | {"property_identifier", "shorthand_property_identifier_pattern", "type_identifier"})


class QuickJSSubset:
    """JavaScript without most of the platform."""

    def refuse_unsupported(self, source_text: SourceText) -> None:
        """Raise ProgramError for the first thing in a program that QuickJS is known not to have."""
        _refuse_unsupported(source_text)

    def suits(self, source_text: SourceText) -> bool:
        """Return whether a program comes to the same in QuickJS as in Deno, and is likely to be no slower."""
        return computes_little(source_text) and _has_one_result(source_text.source) and _names_only_common(source_text)


def _has_one_result(source: str) -> bool:
    """Return whether a program has no numbers whose last digit may differ, and no order that the language leaves open."""
    return not _INEXACT.search(source) and all(map(_orders, _SORT.findall(source)))


def _orders(arguments: str) -> bool:
    """Return whether `sort` is called with nothing or a difference; a comparison by `<` orders equal elements at random."""
    _, arrow, body = arguments.partition("=>")
    return arguments.lstrip().startswith(")") or (arrow != "" and not _COMPARES.search(body.replace("=>", "")))


def _names_only_common(source_text: SourceText) -> bool:
    """Return whether a program names nothing that QuickJS lacks, or that may differ there."""
    words = _UNCOMMON.intersection(_WORD.findall(source_text.source))
    if not words:
        return True
    if not words.isdisjoint(OTHER_PROPERTIES):
        return False
    text, others = source_text.text, words & OTHER_GLOBALS  # a property or a part of a text may be called so
    if others and any(text(node) in others for node, _ in source_text.found.identifiers):
        return False
    try:
        _refuse_unsupported(source_text)
    except ProgramError:
        return False
    return True


def _refuse_unsupported(source_text: SourceText) -> None:
    if not any(name in source_text.source for name in _MISSING):
        return
    bound: set[str] = set()
    asked: list[tuple[Node, str]] = []
    for node, ancestors in walk(source_text.parsed.root):
        if node.kind_id not in _NAME_KIND_IDS:
            continue
        if node.type == "property_identifier" and ancestors[-1].type == "member_expression":
            if name := _missing_member(source_text, node, ancestors[-1]):
                asked.append((node, name))
        elif node.type in {"shorthand_property_identifier_pattern", "type_identifier"}:
            bound.add(source_text.text(node))
        elif node.type in _NAMES and (name := source_text.text(node)) in MISSING_GLOBALS:
            if _is_bound(node, ancestors[-1]):
                bound.add(name)
            elif not _is_question(ancestors[-1]):
                asked.append((node, name))
    for node, name in asked:
        if name not in bound:
            source_text.fail(node, f"the engine `quickjs` has no `{name}`", HINT, CODE)


def _missing_member(source_text: SourceText, node: Node, access: Node) -> str | None:
    name = source_text.text(node)
    owner = access.child_by_field_name("object")
    of = source_text.text(owner) if owner and owner.type in {"identifier", "member_expression"} else ""
    if name == "subtle" and of in {"crypto", "globalThis.crypto"}:
        return "crypto.subtle"
    if of == "globalThis" and name in MISSING_GLOBALS:
        return name
    return name if name in MISSING_METHODS else None


def _is_bound(node: Node, parent: Node) -> bool:
    if parent.type not in _BINDS:
        return False
    name = (
        parent.child_by_field_name("name")
        or parent.child_by_field_name("pattern")
        or parent.child_by_field_name("parameter")
    )
    return name is None or name.start_byte == node.start_byte


def _is_question(parent: Node) -> bool:
    """Return whether a name stands in `typeof URL`, which asks whether it exists."""
    return parent.type == "unary_expression" and parent.child_count > 0 and parent.children[0].type == "typeof"


SUBSET = QuickJSSubset()
