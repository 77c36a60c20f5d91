"""The `select` argument → a selection set that the schema allows: fields below one field, and nothing beside it.

What the caller wrote is parsed by itself and never pasted into a document: what is sent is printed from the checked tree,
so it can't close a brace and go on (N11).
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
from graphql.pyutils import did_you_mean, suggestion_list

from gloveport.errors import ToolError
from gloveport.sources.graphql.connections import connection_of
from gloveport.sources.graphql.defaults import Defaults, text_of
from gloveport.sources.graphql.roots import root_types

LONGEST = 20_000
MOST_TOKENS = 3_000
MOST_FIELDS = 300
MOST_ALIASES = 30
DEEPEST = 12
MOST_LISTED = 80
MOST_COMPARED = 2_000
LONGEST_LINE = 120
BUDGET_BELOW = 20
WHERE = "select"

N = TypeVar("N", bound=Node)


class Refusal(Exception):
    """Something in a selection that is not allowed; `at` is its place in the text."""

    def __init__(self, message: str, at: Node | int | None = None) -> None:
        super().__init__(message)
        if isinstance(at, Node):
            at = at.loc.start if at.loc and at.loc.source.name == WHERE else None
        self.at = at


def written(select: Any, depth: int = 0) -> str:
    """A choice as GraphQL text: lists and objects nest, `true` stands for a field by itself. Raises ToolError."""
    if depth > DEEPEST:
        raise ToolError(f"`select` is nested deeper than {DEEPEST} levels", code="bad-arguments")
    if isinstance(select, str):
        return select
    if isinstance(select, list):
        return " ".join(written(item, depth + 1) for item in select)
    if isinstance(select, dict):
        below = {key: "" if value is True else f" {{ {written(value, depth + 1)} }}" for key, value in select.items()}
        return " ".join(key + rest for key, rest in below.items())
    raise ToolError(f"`select` has {select!r:.40} where a field should be", code="bad-arguments")


def chosen(text: str, document: str, answer: Any, schema: GraphQLSchema, defaults: Defaults) -> str:
    """The chosen fields as they may stand below the document's one root field, which gives the type `answer`.

    A field that has fields of its own and was named without them gets its default ones. Raises ToolError
    `bad-arguments` that shows the place.
    """
    try:
        below = _Walk(schema, defaults).filled(_parsed(text, WHERE), answer, 1)
        if problems := validate(schema, _below_root(parse(document), below), max_errors=1):
            _refuse(problems[0])
    except Refusal as refusal:
        at = None if refusal.at is None else refusal.at - _shift(text)
        raise ToolError(f"bad `select`: {refusal}{_frame(text, at)}", code="bad-arguments") from None
    except RecursionError:
        raise ToolError("bad `select`: a value in it is nested too deeply", code="bad-arguments") from None
    return " ".join(print_ast(one) for one in below.selections)


class _Walk:
    """One pass over a selection: limits, names, and defaults for fields that were named without theirs."""

    def __init__(self, schema: GraphQLSchema, defaults: Defaults) -> None:
        self._schema = schema
        self._defaults = defaults
        self._roots = root_types(schema)
        self._fields = 0
        self._aliases = 0

    def filled(self, node: SelectionSetNode, parent: Any, depth: int) -> SelectionSetNode:
        if depth > DEEPEST:
            raise Refusal(f"it is nested deeper than {DEEPEST} levels", node)
        if parent.name in self._roots and not _is_typename(node):
            raise Refusal(f"the fields of {parent.name} are tools of their own: call those", node)
        seen: set[str] = set()
        for one in node.selections:
            if isinstance(one, FieldNode):
                name = (one.alias or one.name).value
                if name in seen:
                    raise Refusal(f"`{name}` is there twice", one)
                seen.add(name)
        return _with(node, selections=tuple(self._one(one, parent, depth) for one in node.selections))

    def _one(self, node: SelectionNode, parent: Any, depth: int) -> SelectionNode:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise Refusal(f"it has more than {MOST_FIELDS} fields", node)
        if isinstance(node, FieldNode):
            return self._field(node, parent, depth)
        assert isinstance(node, InlineFragmentNode)
        named = parent
        if node.type_condition:
            name = node.type_condition.name.value
            named = self._schema.get_type(name)
            if not is_composite_type(named):
                raise Refusal(f"there is no object type `{name}`.{_meant(name, self._possible(parent))}", node)
        return _with(node, selection_set=self.filled(node.selection_set, named, depth + 1))

    def _field(self, node: FieldNode, parent: Any, depth: int) -> FieldNode:
        name = node.name.value
        if node.alias:
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise Refusal(f"it has more than {MOST_ALIASES} aliases", node)
            if node.alias.value.startswith("__"):
                raise Refusal("an alias can't start with __", node)
        if name == "__typename":
            return node
        fields = getattr(parent, "fields", {})
        if name not in fields:
            raise Refusal(_unknown(name, parent, list(fields), self._possible(parent)), node)
        answer = get_named_type(fields[name].type)
        if not is_composite_type(answer):
            return node
        below = node.selection_set
        if below is None or not below.selections:
            leaves = self._defaults.selection(fields[name].type, BUDGET_BELOW, objects=False)
            below = _parsed(text_of(leaves), "default")
        return _with(node, selection_set=self.filled(below, answer, depth + 1))

    def _possible(self, parent: Any) -> list[str]:
        types = self._schema.get_possible_types(parent) if hasattr(parent, "resolve_type") else ()
        return [type_.name for type_ in types]


class _Strangers(Visitor):
    """Refuses what reaches outside a selection."""

    def enter_directive(self, node: DirectiveNode, *_: Any) -> NoReturn:
        raise Refusal("directives are not allowed", node)

    def enter_variable(self, node: VariableNode, *_: Any) -> NoReturn:
        raise Refusal(f"variables are not allowed; write the value in place of ${node.name.value}", node)

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: Any) -> NoReturn:
        raise Refusal("named fragments are not allowed; write `... on TYPE { … }`", node)


def _parsed(text: str, where: str) -> SelectionSetNode:
    """The one selection set that the text is, with or without braces around it."""
    if len(text) > LONGEST:
        raise Refusal(f"it is longer than {LONGEST:,} characters")
    try:
        # The text begins with a brace, so that the first definition can only be a selection set.
        document = parse(Source(f"{{{text}\n}}" if _shift(text) else text, where), max_tokens=MOST_TOKENS)
    except GraphQLError as error:
        _refuse(error)
    if len(document.definitions) != 1:
        raise Refusal("it may name fields only: no operations, no fragment definitions", document.definitions[1])
    selection = document.definitions[0].selection_set  # pyright: ignore[reportAttributeAccessIssue]
    if not selection.selections:
        raise Refusal("it names no field")
    visit(selection, _Strangers())
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
    """A node with some parts changed; they are frozen dataclasses, though their types don't say so."""
    return dataclasses.replace(cast(Any, node), **changes)


def _refuse(error: GraphQLError) -> NoReturn:
    at = next(iter(error.positions or ()), None) if error.source and error.source.name == WHERE else None
    raise Refusal(error.message.removeprefix("Syntax Error: "), at) from None


def _unknown(name: str, parent: Any, fields: list[str], possible: list[str]) -> str:
    said = f"{parent.name} has no field `{name}`.{_meant(name, fields)}"
    connection = connection_of(parent)
    if connection and name in getattr(connection.node, "fields", {}):
        inner = f"{name}" if connection.items == "nodes" else f"node {{ {name} }}"
        return f"{said} Its items have: write `{connection.items} {{ {inner} }}`."
    if not fields:
        return f"{said} Ask its types: `... on {' | '.join(possible[:12])} {{ … }}`."
    more = f" and {len(fields) - MOST_LISTED} more" if len(fields) > MOST_LISTED else ""
    return f"{said} It has {', '.join(fields[:MOST_LISTED])}{more}."


def _meant(name: str, names: list[str]) -> str:
    return did_you_mean(suggestion_list(name, names[:MOST_COMPARED])[:3])


def _frame(text: str, at: int | None) -> str:
    """The line with a caret below the place, cut around it."""
    if at is None or not 0 <= at <= len(text):
        return ""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0]
    column = at - start
    cut = max(0, column - LONGEST_LINE // 2)
    return f"\n  {line[cut : cut + LONGEST_LINE]}\n  {' ' * (column - cut)}^"
