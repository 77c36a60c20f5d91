"""The root fields of a schema, each under the address that programs write."""

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

from gloveport.sources.graphql.connections import Connection, connection_of
from gloveport.tool_names import problem_with

Operation: TypeAlias = Literal["query", "mutation"]


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A root field: `address` below the source, and its `name` in the schema."""

    address: str
    operation: Operation
    name: str
    field: GraphQLField

    @property
    def type(self) -> GraphQLNamedType:
        """What it answers, without list and non-null."""
        return get_named_type(self.field.type)

    @property
    def select(self) -> str | None:
        """The name of the argument that chooses fields; None where there is nothing to choose."""
        if is_leaf_type(self.type):
            return None
        return _free("select", self.field.args)

    @property
    def connection(self) -> Connection | None:
        """How its answer is paged: a connection that takes `after`, and needs no `last` or `before`."""
        found = connection_of(self.field.type)
        if found is None or "after" not in self.field.args:
            return None
        backwards = [self.field.args[name] for name in ("last", "before") if name in self.field.args]
        return None if any(is_required_argument(argument) for argument in backwards) else found


def root_types(schema: GraphQLSchema) -> frozenset[str]:
    """The names of the types whose fields are tools, or would be: nothing is selected below them.

    A schema may lead back to them (`relay: Query`, a mutation's `query`, `... on Query`), and a choice of fields that went
    there would be another call, under the name of this one.
    """
    types = (schema.query_type, schema.mutation_type, schema.subscription_type)
    return frozenset(type_.name for type_ in types if type_)


def roots_of(schema: GraphQLSchema) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """Queries, then mutations, in the schema's order; and warnings about what is left out.

    A name that is both a query and a mutation stands for neither: they become `query_x` and `mutation_x`, so that no
    address changes from reading to writing when a schema grows.
    """
    types: dict[Operation, GraphQLObjectType | None] = {"query": schema.query_type, "mutation": schema.mutation_type}
    found: list[tuple[Operation, str, GraphQLField]] = [
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
        roots.append(Root(address, operation, name, field))
    return tuple(roots), tuple(warnings)


def _legal(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or problem_with(name) else name


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name
