"""The `select` argument → a selection set that the schema allows: fields below one field, and nothing beside it.

The caller's text is parsed by itself and never pasted into a document. What is sent is printed from the checked tree, so
the text can't close a brace and add something after it (N11).
"""

from __future__ import annotations

from typing import Any

from gloveport.errors import ToolError
from gloveport.sources.graphql.call.literals import LiteralCheck
from gloveport.sources.graphql.call.merging import check_merging
from gloveport.sources.graphql.call.selection_text import (
    MAX_SELECT_DEPTH,
    FieldNode,
    FragmentNode,
    Node,
    SelectionError,
    did_you_mean,
    parse_selection,
    printed,
)
from gloveport.sources.graphql.rows import FieldRow, TypeRow, named_type
from gloveport.sources.graphql.stored_schema import StoredSchema

MAX_SELECT_FIELDS = 300
MAX_SELECT_ALIASES = 30
MAX_LISTED_FIELDS = 80
MAX_LISTED_TYPES = 12
MAX_SHOWN_LINE_CHARS = 120


def select_text(select: Any, depth: int = 0) -> str:
    """Return a selection as GraphQL text: lists and objects nest, `true` is a field by itself. Raise ToolError."""
    if depth > MAX_SELECT_DEPTH:
        raise ToolError(f"`select` is nested deeper than {MAX_SELECT_DEPTH} levels", code="bad-arguments")
    if isinstance(select, str):
        return select
    if isinstance(select, list):
        return " ".join(select_text(item, depth + 1) for item in select)
    if isinstance(select, dict):
        below = {key: "" if value is True else f" {{ {select_text(value, depth + 1)} }}" for key, value in select.items()}
        return " ".join(key + rest for key, rest in below.items())
    raise ToolError(f"`select` has {select!r:.40} where a field should be", code="bad-arguments")


def check_selection(text: str, answer: str, schema: StoredSchema) -> str:
    """Return the selected fields, checked, to stand below a field of the type `answer`.

    A field that has fields of its own and is named without them gets its default ones. Raise ToolError `bad-arguments`
    that shows the place.
    """
    try:
        selected = parse_selection(text)
        walk = _SelectionWalk(schema)
        walk.fill(selected, walk.type(named_type(answer)), 1)
        check_merging(selected)
    except SelectionError as error:
        raise ToolError(f"bad `select`: {error}{_frame(text, error.at)}", code="bad-arguments") from None
    return printed(selected)


class _SelectionWalk:
    """One pass over a selection: checks limits and names, and adds defaults to fields that are named without theirs."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema
        self._literals = LiteralCheck(schema)
        self._types: dict[str, TypeRow | None] = {}
        self._fields: dict[tuple[str, str], FieldRow | None] = {}
        self._count = 0
        self._aliases = 0

    def type(self, name: str) -> TypeRow:
        found = self._find(name)
        if found is None:
            raise SelectionError(f"there is no object type `{name}`")
        return found

    def fill(self, nodes: list[Node], parent: TypeRow, depth: int) -> None:
        if depth > MAX_SELECT_DEPTH:
            raise SelectionError(f"it is nested deeper than {MAX_SELECT_DEPTH} levels", nodes[0].at)
        if parent.name in self._schema.roots and not all(_is_typename(one) for one in nodes):
            raise SelectionError(f"the fields of {parent.name} are tools of their own: call those", nodes[0].at)
        seen: set[str] = set()
        for one in nodes:
            if isinstance(one, FieldNode):
                if one.key in seen:
                    raise SelectionError(f"`{one.key}` is there twice", one.at)
                seen.add(one.key)
        for one in nodes:
            self._count += 1
            if self._count > MAX_SELECT_FIELDS:
                raise SelectionError(f"it has more than {MAX_SELECT_FIELDS} fields", one.at)
            if isinstance(one, FieldNode):
                self._field(one, parent, depth)
            else:
                self.fill(one.below, self._fragment_type(one, parent), depth + 1)

    def _fragment_type(self, node: FragmentNode, parent: TypeRow) -> TypeRow:
        if node.on is None:
            return parent
        named = self._find(node.on)
        if named is None:
            similar = did_you_mean(node.on, parent.overlaps or ())
            raise SelectionError(f"there is no object type `{node.on}`.{similar}", node.at)
        if named.name != parent.name:
            # Either list may be missing where it would be too long; the other one tells as much.
            known = [
                other in one for one, other in ((parent.overlaps, named.name), (named.overlaps, parent.name))
                if one is not None
            ]  # fmt: skip
            if known and not any(known):
                raise SelectionError(f"{parent.name} can never be of type {named.name}", node.at)
        return named

    def _field(self, node: FieldNode, parent: TypeRow, depth: int) -> None:
        if node.alias:
            self._aliases += 1
            if self._aliases > MAX_SELECT_ALIASES:
                raise SelectionError(f"it has more than {MAX_SELECT_ALIASES} aliases", node.at)
            if node.alias.startswith("__"):
                raise SelectionError("an alias can't start with __", node.at)
        node.parent, node.in_object = parent.name, parent.kind == "object"
        row = self._row(parent.name, node.name)
        if row is None:
            raise SelectionError(self._unknown(node.name, parent), node.at)
        node.answer = row.answer
        self._literals.arguments(node.arguments, row.arguments, row.required, f"{parent.name}.{node.name}", node.at)
        below = self._find(named_type(row.answer))
        if below is None:
            if node.below is not None:
                problem = f"`{node.name}` has no fields of its own: it must not have a selection"
                raise SelectionError(problem, node.at)
            return
        node.below = node.below or _defaults(below, node.at)
        self.fill(node.below, below, depth + 1)

    def _find(self, name: str) -> TypeRow | None:
        if name not in self._types:
            self._types[name] = self._schema.type(name)
        return self._types[name]

    def _row(self, type_: str, name: str) -> FieldRow | None:
        if name == "__typename":
            return FieldRow(type_, name, "String!")
        if (type_, name) not in self._fields:
            self._fields[type_, name] = self._schema.field(type_, name)
        return self._fields[type_, name]

    def _unknown(self, name: str, parent: TypeRow) -> str:
        listed = self._schema.field_names(parent.name)
        problem = f"{parent.name} has no field `{name}`.{did_you_mean(name, listed.names)}"
        if parent.items and self._schema.field(parent.node, name):
            inner = f"{name}" if parent.items == "nodes" else f"node {{ {name} }}"
            return f"{problem} Its items have: write `{parent.items} {{ {inner} }}`."
        if not listed.names:
            return f"{problem} Ask its types: `... on {' | '.join((parent.overlaps or ())[:MAX_LISTED_TYPES])} {{ … }}`."
        hidden = listed.more + max(0, len(listed.names) - MAX_LISTED_FIELDS)
        more = f" and {hidden} more" if hidden else ""
        return f"{problem} It has {', '.join(listed.names[:MAX_LISTED_FIELDS])}{more}."


def _defaults(type_: TypeRow, at: int) -> list[Node]:
    """Return the default fields of a type, all at the place of the field that gets them."""
    found = parse_selection(type_.leaves)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        node.at = at
        waiting += node.below or ()
    return found


def _is_typename(node: Node) -> bool:
    return isinstance(node, FieldNode) and node.name == "__typename"


def _frame(text: str, at: int | None) -> str:
    """Return the line, cut around the place, with a caret below it."""
    if at is None or not 0 <= at <= len(text):
        return ""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0]
    column = at - start
    cut = max(0, column - MAX_SHOWN_LINE_CHARS // 2)
    return f"\n  {line[cut : cut + MAX_SHOWN_LINE_CHARS]}\n  {' ' * (column - cut)}^"
