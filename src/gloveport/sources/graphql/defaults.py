"""What is asked for when nobody chose: scalar leaves and shallow objects, within a budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
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

from gloveport.sources.graphql.connections import PAGE_INFO, connection_of

Selection: TypeAlias = Mapping[str, "Selection | None"]
"""Names, each with what is selected below it: `{"name": None, "owner": {"login": None}, "... on User": {"bio": None}}`."""

BUDGET = 60
LEAVES = 36
SMALLEST_SHARE = 3
MOST_MEMBERS = 12
# Where there are more leaves than fit, those that a reader looks for come first, flags last.
TELLING = (
    "id name title login slug key code number url state status type message path field summary count total totalCount "
    "createdAt updatedAt description value amount currency price email text body publishedAt closedAt startsAt endsAt"
).split()
# Nobody gets these without asking for them by name.
SECRET = re.compile(r"(?i)token|secret|password|api_?key|private_?key")
RANKS = {name: rank for rank, name in enumerate(TELLING)}


def text_of(selection: Selection) -> str:
    """The selection as GraphQL: `name owner { login }`."""
    return " ".join(name if below is None else f"{name} {{ {text_of(below)} }}" for name, below in selection.items())


def default_selection(answer: Any, schema: GraphQLSchema, budget: int = BUDGET, *, objects: bool = True) -> Selection:
    """The selection below a field that answers this (composite) type; never empty. Without `objects`, leaves only."""
    connection = connection_of(answer)
    if connection is None:
        lists = not is_list_type(get_nullable_type(answer))
        return _within(get_named_type(answer), schema, budget, objects=objects, lists=lists)
    node = _within(connection.node, schema, budget - 4, objects=objects, lists=False)
    found: dict[str, Selection | None] = {connection.items: node if connection.items == "nodes" else {"node": node}}
    if connection.counted:
        found["totalCount"] = None
    return {**found, "pageInfo": dict.fromkeys(PAGE_INFO)}


def _within(
    type_: GraphQLNamedType, schema: GraphQLSchema, budget: int, *, objects: bool = False, lists: bool = False
) -> Selection:
    if isinstance(type_, GraphQLUnionType):
        return _members(type_, schema, budget)
    assert isinstance(type_, (GraphQLObjectType, GraphQLInterfaceType))
    fields = {name: field for name, field in type_.fields.items() if _is_free(name, field)}
    shallow = [name for name, field in fields.items() if objects and _is_shallow(field, lists=lists)]
    shallow.sort(key=lambda name: (is_list_type(get_nullable_type(fields[name].type)), not is_non_null_type(fields[name].type)))
    found: dict[str, Selection | None] = {"__typename": None} if is_abstract_type(type_) else {}
    found |= dict.fromkeys(_leaves(fields, min(budget, LEAVES) if shallow else budget))
    left = budget - len(found)
    share = max(SMALLEST_SHARE, left // len(shallow) - 1) if shallow else 0
    for name in shallow:
        if left < 2:
            break
        below = _shallow(get_named_type(fields[name].type), schema, min(share, left - 1))
        if set(below) != {"__typename"}:
            found[name] = below
            left -= 1 + _size(below)
    return found or {"__typename": None}


def _shallow(type_: GraphQLNamedType, schema: GraphQLSchema, budget: int) -> Selection:
    """Its leaves; of a connection's edge, which a mutation may give, those of the node."""
    fields = getattr(type_, "fields", {})
    if "node" in fields and "cursor" in fields and is_composite_type(node := get_named_type(fields["node"].type)):
        return {"node": _within(node, schema, budget - 1)}
    return _within(type_, schema, budget)


def _members(union: GraphQLUnionType, schema: GraphQLSchema, budget: int) -> Selection:
    """A fragment for each of the first members, without names that mean something else in one before."""
    members = list(schema.get_possible_types(union))[:MOST_MEMBERS]
    found: dict[str, Selection | None] = {"__typename": None}
    share = max(SMALLEST_SHARE, (budget - 1) // max(1, len(members)))
    left, meanings = budget - 1, dict[str, str]()
    for member in members:
        fields = {name: field for name, field in member.fields.items() if _is_free(name, field)}
        same = [name for name, field in fields.items() if meanings.setdefault(name, f"{field.type}") == f"{field.type}"]
        leaves = _leaves({name: fields[name] for name in same}, min(share, left))
        if leaves:
            found[f"... on {member.name}"] = dict.fromkeys(leaves)
            left -= len(leaves)
    return found


def _is_free(name: str, field: GraphQLField) -> bool:
    if field.deprecation_reason is not None or name.startswith("__") or SECRET.search(name):
        return False
    return not any(is_required_argument(argument) for argument in field.args.values())


def _is_shallow(field: GraphQLField, *, lists: bool) -> bool:
    """An object to look into: not a leaf, not a connection (those are asked for), a list only where `lists` says so."""
    if is_leaf_type(get_named_type(field.type)) or connection_of(field.type) is not None:
        return False
    return lists or not is_list_type(get_nullable_type(field.type))


def _leaves(fields: Mapping[str, GraphQLField], most: int) -> list[str]:
    """The names of up to `most` leaves in the schema's order; telling ones are kept where there are more."""
    leaves = [name for name, field in fields.items() if is_leaf_type(get_named_type(field.type))]
    ranked = sorted(leaves, key=lambda name: _rank(name, fields[name]))
    kept = set(ranked[: max(0, most)])
    return [name for name in leaves if name in kept]


def _rank(name: str, field: GraphQLField) -> int:
    flag = get_named_type(field.type).name == "Boolean" or name.startswith("viewer")
    return RANKS.get(name, len(RANKS) + flag)


def _size(selection: Selection) -> int:
    return sum(1 + _size(below or {}) for below in selection.values())
