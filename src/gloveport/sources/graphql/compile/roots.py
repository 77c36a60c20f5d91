"""The queries and mutations of a schema, each with the address that programs write."""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from typing import Literal, TypeAlias

from graphql import (
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
    is_required_argument,
)

from gloveport.sources.graphql.compile.connection_type import ConnectionType, connection_of
from gloveport.tool_names import problem_with

OperationType: TypeAlias = Literal["query", "mutation"]


@dataclass(frozen=True, slots=True, eq=False)
class RootField:
    """A query or mutation: its `address` below the source, and its `name` in the schema."""

    address: str
    operation: OperationType
    name: str
    field: GraphQLField

    @property
    def type(self) -> GraphQLNamedType:
        """The type of its answer, without list and non-null."""
        return get_named_type(self.field.type)

    @property
    def select(self) -> str | None:
        """The name of the argument that selects fields; None where there are none to select."""
        if is_leaf_type(self.type):
            return None
        return _free("select", self.field.args)

    @property
    def connection(self) -> ConnectionType | None:
        """The connection by which its answer is paged: one that takes `after` and does not require `last` or `before`."""
        found = connection_of(self.field.type)
        if found is None or "after" not in self.field.args:
            return None
        backwards = [self.field.args[name] for name in ("last", "before") if name in self.field.args]
        return None if any(is_required_argument(argument) for argument in backwards) else found


def root_types(schema: GraphQLSchema) -> frozenset[str]:
    """Return the names of the root types, below which nothing may be selected.

    A schema may lead back to them (`relay: Query`, a mutation's `query`, `... on Query`). A selection that went there would
    make another call under the name of this one.
    """
    types = (schema.query_type, schema.mutation_type, schema.subscription_type)
    return frozenset(type_.name for type_ in types if type_)


def root_fields(schema: GraphQLSchema) -> tuple[tuple[RootField, ...], list[str]]:
    """Return queries, then mutations, in the schema's order; and warnings about what is left out.

    Where a query and a mutation have the same name, they become `query_x` and `mutation_x`, so that no address changes from
    reading to writing when a schema grows.
    """
    types: dict[OperationType, GraphQLObjectType | None] = {"query": schema.query_type, "mutation": schema.mutation_type}
    found: list[tuple[OperationType, str, GraphQLField]] = [
        (operation, name, field) for operation, type_ in types.items() if type_ for name, field in type_.fields.items()
    ]
    warnings = []
    if schema.subscription_type:
        names = ", ".join(list(schema.subscription_type.fields)[:5])
        warnings.append(f"subscriptions can't be called and are left out ({names})")
    if reserved := [name for _, name, _ in found if name.startswith("__")]:
        warnings.append(f"names that start with __ are GraphQL's own and are left out ({', '.join(reserved[:5])})")
    listed = [one for one in found if not one[1].startswith("__")]
    times = Counter(name for _, name, _ in listed)
    taken = {name for name, count in times.items() if count == 1 and _legal(name) == name}
    roots = []
    for operation, name, field in listed:
        address = name
        if name not in taken or times[name] > 1:
            address = _free(_legal(name if times[name] == 1 else f"{operation}_{name}"), taken)
            taken.add(address)
        roots.append(RootField(address, operation, name, field))
    return tuple(roots), warnings


def _legal(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or problem_with(name) else name


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name
