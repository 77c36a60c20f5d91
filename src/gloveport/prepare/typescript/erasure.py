"""Erase the types of a TypeScript program, for an engine without TypeScript: types become blanks, and offsets stay.

    const n: number = f<string>(a as any)!      →      const n         = f        (a       )

Blanking can join what a line end kept apart (`a as any⏎(b)` would become a call). So where an erased stretch ends or begins
a statement, a `;` replaces one of its characters. Syntax that is more than a type (enums, namespaces, parameter properties,
decorators) is refused with its place; the engine `deno` runs it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gloveport.prepare.positions import Edit
from gloveport.prepare.typescript.survey import (
    CASTS,
    HOLDERS,
    MEMBERS,
    NAMESPACES,
    PARAMETERS,
    REFUSED,
    TYPE_PARTS,
    TYPE_STATEMENTS,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

CODE = "engine-lacks"
HINT = "the engine `deno` has it; where you can name no engine, do without it"

WORDS = frozenset({"readonly", "abstract", "declare", "override"})
MARKED = frozenset({"?", "!"})
_ONE_LINE = frozenset({"array_type", "lookup_type", "generic_type"})
_NOT_LINE_END = re.compile("[^\n\r\u2028\u2029]")
_LINE_END = re.compile("[\n\r\u2028\u2029]")
_TAG = re.compile(">`")
_GOES_ON = re.compile(r"\s*(?:\.|\?\.|<|`|!(?!=))")


def erase(source_text: SourceText) -> list[Edit]:
    """Return the edits that blank the types of a program; raise `ProgramError` for syntax that is more than a type."""
    return _Eraser(source_text).edits()


class _Eraser:
    def __init__(self, source_text: SourceText) -> None:
        self._source_text = source_text
        self._text = source_text.parsed.shape
        self._taken = sorted((edit.start, edit.end) for edit in source_text.edits if edit.end > edit.start)
        self._inserted = {edit.start for edit in source_text.edits if edit.start == edit.end}
        self._ends = set(source_text.found.ends)
        self._erased: dict[int, tuple[int, str]] = {}  # start → end, and the replacement

    def edits(self) -> list[Edit]:
        gone = 0  # the end of the last node that was erased as a whole
        types: list[tuple[int, int]] = []  # of the casts around this node, the innermost last
        for node, parent in self._source_text.found.erasable:
            start = node.start_byte
            while types and types[-1][1] <= start:
                types.pop()
            if start < gone or (types and types[-1][0] <= start):
                continue
            if node.type in CASTS:
                self._blank_cast(node, parent)
                types.append((_value_of(node).end_byte, node.end_byte))
            elif self._look(node, parent):
                self._refuse_broken_types(node)
                gone = node.end_byte
        self._refuse_unread_tags()
        return [edit for start in sorted(self._erased) for edit in self._cut(start, *self._erased[start])]

    def _refuse_unread_tags(self) -> None:
        """Refuse the type arguments of a tag, other than one name: the grammar reads them as comparisons."""
        starts = sorted(self._erased)
        for found in _TAG.finditer(self._text):
            before = bisect_right(starts, found.start()) - 1
            if before < 0 or self._erased[starts[before]][0] <= found.start():
                node = self._source_text.parsed.root.descendant_for_byte_range(found.start(), found.end())
                assert node
                message = "the type of this tag can't be distinguished from a comparison"
                self._source_text.fail(node, message, "remove the type", CODE)

    def _refuse_broken_types(self, root: Node) -> None:
        """Refuse `a as B⏎[c]`: one type to the grammar, two statements to engines; neither reading is safe."""
        for node, _ in walk(root):
            if node.type in _ONE_LINE and _LINE_END.search(
                self._text, node.children[0].end_byte, node.children[1].start_byte
            ):
                hint = "end the line before it with `;`"
                self._source_text.fail(node.children[1], f"unexpected `{self._text[node.children[1].start_byte]}`", hint)

    # What to erase.

    def _look(self, node: Node, parent: Node) -> bool:
        """Erase the types in a node; return whether the node as a whole is erased."""
        kind = node.type
        if kind in TYPE_STATEMENTS or _is_type_export(node) or _is_type_namespace(node):
            return self._blank_statement(node)
        if kind in REFUSED or kind in NAMESPACES:
            self._source_text.fail(node, f"the engine `quickjs` has no {REFUSED.get(kind, 'namespaces')}", HINT, CODE)
        if kind in TYPE_PARTS:
            return self._blank_part(node, parent)
        if kind in MEMBERS or kind in HOLDERS:
            return self._blank_this(node) or self._blank_marks(node)
        if kind == "type_assertion":
            self._blank_assertion(node)
        elif kind == "non_null_expression":
            self._blank(node.end_byte - 1, node.end_byte)
        elif kind == "binary_expression":
            self._blank_tag_types(node)
        elif kind == "abstract_class_declaration":
            self._blank(node.start_byte, node.start_byte + len("abstract"))
        return False

    def _blank_statement(self, node: Node) -> bool:
        self._erased[node.start_byte] = node.end_byte, f";{self._spaces(node.start_byte + 1, node.end_byte)}"
        return True

    def _blank_part(self, node: Node, parent: Node) -> bool:
        if node.type == "accessibility_modifier" and parent.type in PARAMETERS:
            self._source_text.fail(parent, "the engine `quickjs` has no parameter properties", HINT, CODE)
        if parent.type == "arrow_function" and self._move_parenthesis(node, parent):
            return True
        self._blank(node.start_byte, node.end_byte)
        if node.type.endswith("_modifier"):
            self._part_from_before(node, parent)
        return True

    def _move_parenthesis(self, node: Node, arrow: Node) -> bool:
        """Move a parenthesis to the other end of the erased stretch: no line may end before `=>` or after `async`."""
        parameters = arrow.child_by_field_name("parameters")
        assert parameters
        if node.type == "type_parameters":
            start, end = node.start_byte, parameters.start_byte + 1
            text = f"({self._spaces(start + 1, end)}"
        else:
            start, end = parameters.end_byte - 1, node.end_byte
            text = f"{self._spaces(start, end - 1)})"
        if not _LINE_END.search(self._text, start, end):
            return False
        self._erased[start] = end, text
        return True

    def _blank_cast(self, node: Node, parent: Node) -> None:
        if _GOES_ON.match(self._text, node.end_byte):
            # No cast continues like this: the grammar lost a part of its type (it reads `a as b.c.d` as `(a as b.c).d`).
            message = "this cast can't be separated from what follows it"
            self._source_text.fail(node, message, "put the cast in parentheses", CODE)
        value = _value_of(node)
        self._blank(value.end_byte, node.end_byte)
        for child in node.children:
            if child.start_byte >= value.end_byte:
                self._refuse_broken_types(child)
        if parent.type == "call_expression" and _LINE_END.search(self._text, node.end_byte, parent.end_byte):
            self._ends.add(node.end_byte)  # a cast can't be called, so this line end ends the statement

    def _blank_assertion(self, node: Node) -> None:
        types = node.children[0]
        value = next(child for child in node.children[1:] if child.type != "comment")
        if _LINE_END.search(self._text, node.start_byte, value.start_byte):
            self._source_text.fail(
                types, "the engine `quickjs` does not support `<type>` on a line of its own", "write `… as type`", CODE
            )
        self._blank(types.start_byte, types.end_byte)

    def _blank_tag_types(self, node: Node) -> None:
        """Blank the type of a tag, which the grammar, unlike every engine, reads as two comparisons."""
        left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        if not (left and operator and right and right.type == "template_string" and operator.type.startswith(">")):
            return
        inner = left.child_by_field_name("operator") if left.type == "binary_expression" else None
        if inner and inner.type == "<" and operator.type == ">":
            self._blank(inner.start_byte, operator.end_byte)

    def _blank_marks(self, node: Node) -> bool:
        words = [child for child in node.children if child.type in WORDS]
        if node.type in PARAMETERS and words:
            self._source_text.fail(node, "the engine `quickjs` has no parameter properties", HINT, CODE)
        if any(word.type in {"declare", "abstract"} for word in words):
            return self._blank_statement(node)
        for child in words + [child for child in node.children if child.type in MARKED and not child.is_named]:
            self._blank(child.start_byte, child.end_byte)
            if child in words:
                self._part_from_before(child, node)
        return False

    def _part_from_before(self, word: Node, member: Node) -> None:
        """Keep a member apart from the one before: `a = 1⏎private [b] = 2` would continue it without its first word."""
        others = (child for child in member.children if child.type not in WORDS and not child.type.endswith("_modifier"))
        following = next((child for child in others if child.start_byte >= word.end_byte), None)
        if (
            member.start_byte == word.start_byte
            and following is not None
            and following.type in {"computed_property_name", "*"}
        ):
            self._blank_statement(word)

    def _blank_this(self, parameter: Node) -> bool:
        """Blank a first parameter `this: T`: it declares what the function is called on, and takes no argument."""
        pattern = parameter.child_by_field_name("pattern")
        if pattern is None or pattern.type != "this":
            return False
        comma = parameter.next_sibling
        self._blank(parameter.start_byte, comma.end_byte if comma and comma.type == "," else parameter.end_byte)
        return True

    # How to erase it.

    def _spaces(self, start: int, end: int) -> str:
        return _NOT_LINE_END.sub(" ", self._source_text.source[start:end])

    def _blank(self, start: int, end: int) -> None:
        if end > start:
            self._erased[start] = end, self._spaces(start, end)

    def _cut(self, start: int, end: int, text: str) -> Iterator[Edit]:
        """Yield the edits of an erased stretch without what other edits remove; a `;` ends its statement."""
        if end in self._ends and end not in self._inserted and text[-1] == " ":
            text = f"{text[:-1]};"
        at = start
        for index in range(max(0, bisect_left(self._taken, (start,)) - 1), len(self._taken)):
            taken, until = self._taken[index]
            if taken >= end:
                break
            if until <= at:
                continue
            if taken > at:
                yield Edit(at, taken, text[at - start : taken - start])
            at = max(at, until)
        if at < end:
            yield Edit(at, end, text[at - start :])


def _value_of(cast: Node) -> Node:
    return next(child for child in cast.children if child.type != "comment")


def _is_type_export(node: Node) -> bool:
    """Return whether an `export` holds types only: `export type …`, `export interface …`."""
    if node.type != "export_statement":
        return False
    declaration = node.child_by_field_name("declaration")
    if declaration is not None:
        return declaration.type in TYPE_STATEMENTS or _is_type_namespace(declaration)
    return any(child.type == "type" for child in node.children)


def _is_type_namespace(node: Node) -> bool:
    """Return whether this is a namespace that holds types only."""
    if node.type == "expression_statement" and node.named_child_count == 1:
        node = node.named_children[0]
    body = node.child_by_field_name("body") if node.type in NAMESPACES else None
    if body is None:
        return False
    return all(
        child.type in TYPE_STATEMENTS | {"comment"} or _is_type_export(child) or _is_type_namespace(child)
        for child in body.named_children
    )
