"""The part of JavaScript's platform that QuickJS has. A program that names anything else is refused before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gloveport.prepare.typescript.erasure import CODE, HINT
from gloveport.prepare.typescript.survey import kind_ids, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

_MISSING_GLOBALS = """
    AbortController AbortSignal Blob Buffer ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy CryptoKey
    CustomEvent DecompressionStream ErrorEvent Event EventTarget File FormData Headers Intl MessageEvent ReadableStream
    ReadableStreamDefaultReader Request Response Temporal TextDecoderStream TextEncoderStream TransformStream URL URLPattern
    URLSearchParams WebAssembly WritableStream WritableStreamDefaultWriter
"""
MISSING_GLOBALS = frozenset(_MISSING_GLOBALS.split())
"""Globals that the engine `deno` has and `quickjs` does not."""

MISSING_METHODS = frozenset({"toLocaleString", "toLocaleDateString", "toLocaleTimeString"})
"""Methods that need locale data, which `quickjs` does not have."""

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
