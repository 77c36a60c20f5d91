"""The fields that a call gets when it selects none: scalar leaves and shallow objects, within a budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from graphql import (
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_composite_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_required_argument,
)

from gloveport.sources.graphql.compile.connection_type import PAGE_INFO, connection_of
from gloveport.sources.graphql.compile.roots import root_types

Selection: TypeAlias = Mapping[str, "Selection | None"]
"""Fields, each with what is selected below: `{"name": None, "owner": {"login": None}, "... on User": {"bio": None}}`."""

MAX_FIELDS = 60
MAX_LEAVES_BESIDE_OBJECTS = 36
MIN_FIELDS_PER_OBJECT = 3
MAX_UNION_MEMBERS = 12
# Where there are more leaves than fit, those that a reader looks for come first and flags last.
PREFERRED = (
    *("id", "name", "title", "login", "slug", "key", "code", "number", "url", "state", "status", "type", "message", "path"),
    *("field", "summary", "count", "total", "totalCount", "createdAt", "updatedAt", "description", "value", "amount"),
    *("currency", "price", "email", "text", "body", "publishedAt", "closedAt", "startsAt", "endsAt"),
)
# Fields that a call gets only when it selects them by name.
SECRET = re.compile(r"(?i)token|secret|password|api_?key|private_?key")
RANKS = {name: rank for rank, name in enumerate(PREFERRED)}


def to_text(selection: Selection) -> str:
    """Return the selection as GraphQL: `name owner { login }`."""
    return " ".join(name if below is None else f"{name} {{ {to_text(below)} }}" for name, below in selection.items())


class DefaultSelections:
    """The default selections of one schema. The fields of a type are sorted once, because many fields lead to it."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._root_types = root_types(schema)
        self._sorted: dict[str, _SortedFields] = {}

    def selection(self, answer: Any, budget: int = MAX_FIELDS, *, objects: bool = True) -> Selection:
        """Return the selection below a field of this (composite) type; never empty. Without `objects`, only leaves."""
        connection = connection_of(answer)
        if connection is None:
            lists = not is_list_type(get_nullable_type(answer))
            return self._within(get_named_type(answer), budget, objects=objects, lists=lists)
        node = self._within(connection.node, budget - 4, objects=objects, lists=False)
        found: dict[str, Selection | None] = {connection.items: node if connection.items == "nodes" else {"node": node}}
        if connection.counted:
            found["totalCount"] = None
        return {**found, "pageInfo": dict.fromkeys(PAGE_INFO)}

    def _within(self, type_: GraphQLNamedType, budget: int, *, objects: bool = False, lists: bool = False) -> Selection:
        if isinstance(type_, GraphQLUnionType):
            return self._members(type_, budget)
        if type_.name in self._root_types:
            return {"__typename": None}
        fields = self._fields(type_)
        shallow = (*fields.objects, *(fields.lists if lists else ())) if objects else ()
        found: dict[str, Selection | None] = {"__typename": None} if is_abstract_type(type_) else {}
        found |= fields.first(min(budget, MAX_LEAVES_BESIDE_OBJECTS) if shallow else budget)
        left = budget - len(found)
        share = max(MIN_FIELDS_PER_OBJECT, left // len(shallow) - 1) if shallow else 0
        for name, inner in shallow:
            if left < 2:
                break
            below = self._shallow(inner, min(share, left - 1))
            if set(below) != {"__typename"}:
                found[name] = below
                left -= 1 + _size(below)
        return found or {"__typename": None}

    def _shallow(self, type_: GraphQLNamedType, budget: int) -> Selection:
        """Return the leaves of a type; for a connection's edge, which a mutation may return, those of its node."""
        fields = getattr(type_, "fields", {})
        if "node" in fields and "cursor" in fields and is_composite_type(node := get_named_type(fields["node"].type)):
            return {"node": self._within(node, budget - 1)}
        return self._within(type_, budget)

    def _members(self, union: GraphQLUnionType, budget: int) -> Selection:
        """Return a fragment for each of the first members, without names that have another type in an earlier member."""
        members = [one for one in self._schema.get_possible_types(union) if one.name not in self._root_types][
            :MAX_UNION_MEMBERS
        ]
        found: dict[str, Selection | None] = {"__typename": None}
        share = max(MIN_FIELDS_PER_OBJECT, (budget - 1) // max(1, len(members)))
        left, types = budget - 1, dict[str, str]()
        for member in members:
            leaves = self._fields(member).first(min(share, left))
            kinds = {name: f"{member.fields[name].type}" for name in leaves}
            same = [name for name, kind in kinds.items() if types.setdefault(name, kind) == kind]
            if same:
                found[f"... on {member.name}"] = dict.fromkeys(same)
                left -= len(same)
        return found

    def _fields(self, type_: Any) -> _SortedFields:
        if type_.name not in self._sorted:
            self._sorted[type_.name] = _sort_fields(type_.fields)
        return self._sorted[type_.name]


@dataclass(frozen=True, slots=True)
class _SortedFields:
    """A type's fields that need no arguments; leaves come with their place in the schema, the preferred ones first."""

    leaves: tuple[tuple[str, int], ...]
    objects: tuple[tuple[str, GraphQLNamedType], ...]
    lists: tuple[tuple[str, GraphQLNamedType], ...]

    def first(self, count: int) -> dict[str, None]:
        """Return up to `count` leaves, in the schema's order."""
        return dict.fromkeys(name for name, _ in sorted(self.leaves[: max(0, count)], key=itemgetter(1)))


def _sort_fields(fields: Mapping[str, GraphQLField]) -> _SortedFields:
    free = {name: field for name, field in fields.items() if _is_free(name, field)}
    leaves = [(name, place) for place, (name, field) in enumerate(free.items()) if is_leaf_type(get_named_type(field.type))]
    leaves.sort(key=lambda leaf: _rank(leaf[0], free[leaf[0]]))
    # Connections are left out: the caller chooses their size.
    deep = [
        (name, field)
        for name, field in free.items()
        if not is_leaf_type(get_named_type(field.type)) and connection_of(field.type) is None
    ]
    deep.sort(key=lambda item: not is_non_null_type(item[1].type))
    named = [(name, get_named_type(field.type), is_list_type(get_nullable_type(field.type))) for name, field in deep]
    return _SortedFields(
        tuple(leaves[:MAX_FIELDS]),
        tuple((name, type_) for name, type_, listed in named if not listed)[:MAX_FIELDS],
        tuple((name, type_) for name, type_, listed in named if listed)[:MAX_FIELDS],
    )


def _is_free(name: str, field: GraphQLField) -> bool:
    if field.deprecation_reason is not None or name.startswith("__") or SECRET.search(name):
        return False
    return not any(is_required_argument(argument) for argument in field.args.values())


def _rank(name: str, field: GraphQLField) -> int:
    flag = get_named_type(field.type).name == "Boolean" or name.startswith("viewer")
    return RANKS.get(name, len(RANKS) + flag)


def _size(selection: Selection) -> int:
    return sum(1 + _size(below or {}) for below in selection.values())
