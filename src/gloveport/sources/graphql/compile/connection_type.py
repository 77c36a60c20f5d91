"""Relay connections, the usual form of a paged list in GraphQL, recognised by their shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from graphql import GraphQLNamedType, get_named_type, is_composite_type, is_non_null_type, is_object_type

PAGE_INFO = ("hasNextPage", "endCursor")


@dataclass(frozen=True, slots=True)
class ConnectionType:
    """A connection: where its items are (`nodes`, or `edges { node }`), their type, and whether it has `totalCount`."""

    items: Literal["nodes", "edges"]
    node: GraphQLNamedType
    counted: bool


def connection_of(type_: Any) -> ConnectionType | None:
    """Return the connection that a type is; None for any other type, a list of connections included."""
    if is_non_null_type(type_):
        type_ = type_.of_type
    if not is_object_type(type_):
        return None
    fields = type_.fields
    info = get_named_type(fields["pageInfo"].type) if "pageInfo" in fields else None
    if not is_object_type(info) or any(name not in info.fields for name in PAGE_INFO):
        return None
    counted = "totalCount" in fields
    if "nodes" in fields and is_composite_type(node := get_named_type(fields["nodes"].type)):
        return ConnectionType("nodes", node, counted)
    edge = get_named_type(fields["edges"].type) if "edges" in fields else None
    inner = edge.fields.get("node") if is_object_type(edge) else None
    if inner and is_composite_type(node := get_named_type(inner.type)):
        return ConnectionType("edges", node, counted)
    return None
