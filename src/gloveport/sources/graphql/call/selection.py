"""The `select` argument → a selection set that the schema allows: fields below one field, and nothing beside it.

The caller's text is parsed by itself and never pasted into a document. What is sent is printed from the checked tree, so
the text can't close a brace and add something after it (N11).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn, TypeVar, cast

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    Source,
    VariableNode,
    Visitor,
    get_named_type,
    is_composite_type,
    parse,
    print_ast,
    validate,
    visit,
)

from gloveport.errors import ToolError
from gloveport.sources.graphql.compile.connection_type import connection_of
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, to_text
from gloveport.sources.graphql.compile.roots import root_types
from gloveport.suggestions import near

MAX_SELECT_CHARS = 20_000
MAX_SELECT_TOKENS = 3_000
MAX_SELECT_FIELDS = 300
MAX_SELECT_ALIASES = 30
MAX_SELECT_DEPTH = 12
MAX_LISTED_FIELDS = 80
MAX_COMPARED_NAMES = 2_000
MAX_SHOWN_LINE_CHARS = 120
MAX_DEFAULT_FIELDS_BELOW = 20
SOURCE_NAME = "select"

N = TypeVar("N", bound=Node)


class SelectionError(Exception):
    """Something in a selection that is not allowed; `at` is its offset in the text."""

    def __init__(self, message: str, at: Node | int | None = None) -> None:
        super().__init__(message)
        if isinstance(at, Node):
            at = at.loc.start if at.loc and at.loc.source.name == SOURCE_NAME else None
        self.at = at


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


def check_selection(text: str, document: str, answer: Any, schema: GraphQLSchema, defaults: DefaultSelections) -> str:
    """Return the selected fields, checked, to stand below the one root field of `document`, which has the type `answer`.

    A field that has fields of its own and is named without them gets its default ones. Raise ToolError `bad-arguments`
    that shows the place.
    """
    try:
        below = _SelectionWalk(schema, defaults).filled(_parsed(text, SOURCE_NAME), answer, 1)
        if problems := validate(schema, _below_root(parse(document), below), max_errors=1):
            _refuse(problems[0])
    except SelectionError as error:
        at = None if error.at is None else error.at - _shift(text)
        raise ToolError(f"bad `select`: {error}{_frame(text, at)}", code="bad-arguments") from None
    except RecursionError:
        raise ToolError("bad `select`: a value in it is nested too deeply", code="bad-arguments") from None
    return " ".join(print_ast(one) for one in below.selections)


class _SelectionWalk:
    """One pass over a selection: checks limits and names, and adds defaults to fields that are named without theirs."""

    def __init__(self, schema: GraphQLSchema, defaults: DefaultSelections) -> None:
        self._schema = schema
        self._defaults = defaults
        self._root_types = root_types(schema)
        self._fields = 0
        self._aliases = 0

    def filled(self, node: SelectionSetNode, parent: Any, depth: int) -> SelectionSetNode:
        if depth > MAX_SELECT_DEPTH:
            raise SelectionError(f"it is nested deeper than {MAX_SELECT_DEPTH} levels", node)
        if parent.name in self._root_types and not _is_typename(node):
            raise SelectionError(f"the fields of {parent.name} are tools of their own: call those", node)
        seen: set[str] = set()
        for one in node.selections:
            if isinstance(one, FieldNode):
                name = (one.alias or one.name).value
                if name in seen:
                    raise SelectionError(f"`{name}` is there twice", one)
                seen.add(name)
        return _with(node, selections=tuple(self._one(one, parent, depth) for one in node.selections))

    def _one(self, node: SelectionNode, parent: Any, depth: int) -> SelectionNode:
        self._fields += 1
        if self._fields > MAX_SELECT_FIELDS:
            raise SelectionError(f"it has more than {MAX_SELECT_FIELDS} fields", node)
        if isinstance(node, FieldNode):
            return self._field(node, parent, depth)
        assert isinstance(node, InlineFragmentNode)
        named = parent
        if node.type_condition:
            name = node.type_condition.name.value
            named = self._schema.get_type(name)
            if not is_composite_type(named):
                raise SelectionError(
                    f"there is no object type `{name}`.{_did_you_mean(name, self._possible(parent))}", node
                )
        return _with(node, selection_set=self.filled(node.selection_set, named, depth + 1))

    def _field(self, node: FieldNode, parent: Any, depth: int) -> FieldNode:
        name = node.name.value
        if node.alias:
            self._aliases += 1
            if self._aliases > MAX_SELECT_ALIASES:
                raise SelectionError(f"it has more than {MAX_SELECT_ALIASES} aliases", node)
            if node.alias.value.startswith("__"):
                raise SelectionError("an alias can't start with __", node)
        if name == "__typename":
            return node
        fields = getattr(parent, "fields", {})
        if name not in fields:
            raise SelectionError(_unknown(name, parent, list(fields), self._possible(parent)), node)
        answer = get_named_type(fields[name].type)
        if not is_composite_type(answer):
            return node
        below = node.selection_set
        if below is None or not below.selections:
            leaves = self._defaults.selection(fields[name].type, MAX_DEFAULT_FIELDS_BELOW, objects=False)
            below = _parsed(to_text(leaves), "default")
        return _with(node, selection_set=self.filled(below, answer, depth + 1))

    def _possible(self, parent: Any) -> list[str]:
        types = self._schema.get_possible_types(parent) if hasattr(parent, "resolve_type") else ()
        return [type_.name for type_ in types]


class _ForbiddenNodes(Visitor):
    """Refuses directives, variables and named fragments, which reach outside a selection."""

    def enter_directive(self, node: DirectiveNode, *_: Any) -> NoReturn:
        raise SelectionError("directives are not allowed", node)

    def enter_variable(self, node: VariableNode, *_: Any) -> NoReturn:
        raise SelectionError(f"variables are not allowed; write the value in place of ${node.name.value}", node)

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: Any) -> NoReturn:
        raise SelectionError("named fragments are not allowed; write `... on TYPE { … }`", node)


def _parsed(text: str, where: str) -> SelectionSetNode:
    """Parse the text as one selection set, with or without braces around it."""
    if len(text) > MAX_SELECT_CHARS:
        raise SelectionError(f"it is longer than {MAX_SELECT_CHARS:,} characters")
    try:
        # The text is made to begin with a brace, so that the first definition can only be a selection set.
        document = parse(Source(f"{{{text}\n}}" if _shift(text) else text, where), max_tokens=MAX_SELECT_TOKENS)
    except GraphQLError as error:
        _refuse(error)
    if len(document.definitions) != 1:
        raise SelectionError("it may name fields only: no operations, no fragment definitions", document.definitions[1])
    selection = document.definitions[0].selection_set  # pyright: ignore[reportAttributeAccessIssue]
    if not selection.selections:
        raise SelectionError("it names no field")
    visit(selection, _ForbiddenNodes())
    return selection


def _is_typename(node: SelectionSetNode) -> bool:
    return all(isinstance(one, FieldNode) and one.name.value == "__typename" for one in node.selections)


def _shift(text: str) -> int:
    return 0 if text.lstrip().startswith("{") else 1


def _below_root(document: DocumentNode, selection: SelectionSetNode) -> DocumentNode:
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    root = _with(operation.selection_set.selections[0], selection_set=selection)
    operation = _with(operation, selection_set=SelectionSetNode(selections=(root,)))
    return _with(document, definitions=(operation,))


def _with(node: N, **changes: Any) -> N:
    """Return a node with some parts changed. Nodes are frozen dataclasses, though their types don't say so."""
    return dataclasses.replace(cast(Any, node), **changes)


def _refuse(error: GraphQLError) -> NoReturn:
    at = next(iter(error.positions or ()), None) if error.source and error.source.name == SOURCE_NAME else None
    raise SelectionError(error.message.removeprefix("Syntax Error: "), at) from None


def _unknown(name: str, parent: Any, fields: list[str], possible: list[str]) -> str:
    problem = f"{parent.name} has no field `{name}`.{_did_you_mean(name, fields)}"
    connection = connection_of(parent)
    if connection and name in getattr(connection.node, "fields", {}):
        inner = f"{name}" if connection.items == "nodes" else f"node {{ {name} }}"
        return f"{problem} Its items have: write `{connection.items} {{ {inner} }}`."
    if not fields:
        return f"{problem} Ask its types: `... on {' | '.join(possible[:12])} {{ … }}`."
    more = f" and {len(fields) - MAX_LISTED_FIELDS} more" if len(fields) > MAX_LISTED_FIELDS else ""
    return f"{problem} It has {', '.join(fields[:MAX_LISTED_FIELDS])}{more}."


def _did_you_mean(name: str, names: list[str]) -> str:
    similar = [f"'{one}'" for one in near(name, names[:MAX_COMPARED_NAMES])]
    return f" Did you mean {' or '.join(similar)}?" if similar else ""


def _frame(text: str, at: int | None) -> str:
    """Return the line, cut around the place, with a caret below it."""
    if at is None or not 0 <= at <= len(text):
        return ""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0]
    column = at - start
    cut = max(0, column - MAX_SHOWN_LINE_CHARS // 2)
    return f"\n  {line[cut : cut + MAX_SHOWN_LINE_CHARS]}\n  {' ' * (column - cut)}^"
