"""What the engine `quickjs` does not have and programs ask for by name: refused before the run, at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gloveport.prepare.typescript.erasure import CODE, HINT
from gloveport.prepare.typescript.survey import kind_ids, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import Sheet

_LACKING = """
    AbortController AbortSignal Blob Buffer ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy CryptoKey
    CustomEvent DecompressionStream ErrorEvent Event EventTarget File FormData Headers Intl MessageEvent ReadableStream
    ReadableStreamDefaultReader Request Response Temporal TextDecoderStream TextEncoderStream TransformStream URL URLPattern
    URLSearchParams WebAssembly WritableStream WritableStreamDefaultWriter
"""
LACKING = frozenset(_LACKING.split())
"""Globals that the engine `deno` has and `quickjs` does not."""

LACKING_MEMBERS = frozenset({"toLocaleString", "toLocaleDateString", "toLocaleTimeString"})
"""Methods that need the data of languages and regions, which `quickjs` does not have."""

_ASKED = (*sorted(LACKING | LACKING_MEMBERS), "subtle")
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


_LOOKED_AT_IDS = kind_ids(_NAMES | {"property_identifier", "shorthand_property_identifier_pattern", "type_identifier"})


class QuickJSSubset:
    """JavaScript without most of the platform."""

    def refuse_unsupported(self, sheet: Sheet) -> None:
        """Raise ProgramError for the first thing in a program that QuickJS is known not to have."""
        _refuse_unsupported(sheet)


def _refuse_unsupported(sheet: Sheet) -> None:
    if not any(name in sheet.source for name in _ASKED):
        return
    bound: set[str] = set()
    asked: list[tuple[Node, str]] = []
    for node, ancestors in walk(sheet.parsed.root):
        if node.kind_id not in _LOOKED_AT_IDS:
            continue
        if node.type == "property_identifier" and ancestors[-1].type == "member_expression":
            if name := _lacking_member(sheet, node, ancestors[-1]):
                asked.append((node, name))
        elif node.type in {"shorthand_property_identifier_pattern", "type_identifier"}:
            bound.add(sheet.text(node))
        elif node.type in _NAMES and (name := sheet.text(node)) in LACKING:
            if _is_bound(node, ancestors[-1]):
                bound.add(name)
            elif not _is_question(ancestors[-1]):
                asked.append((node, name))
    for node, name in asked:
        if name not in bound:
            sheet.fail(node, f"the engine `quickjs` has no `{name}`", HINT, CODE)


def _lacking_member(sheet: Sheet, node: Node, access: Node) -> str | None:
    name = sheet.text(node)
    owner = access.child_by_field_name("object")
    of = sheet.text(owner) if owner and owner.type in {"identifier", "member_expression"} else ""
    if name == "subtle" and of in {"crypto", "globalThis.crypto"}:
        return "crypto.subtle"
    if of == "globalThis" and name in LACKING:
        return name
    return name if name in LACKING_MEMBERS else None


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
    """`typeof URL` asks whether there is one."""
    return parent.type == "unary_expression" and parent.child_count > 0 and parent.children[0].type == "typeof"
