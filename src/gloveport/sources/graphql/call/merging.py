"""Check that fields which an answer has under one name can be merged (GraphQL, "Field Selection Merging").

Each field is looked at once for each level above it, so the time does not grow with the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gloveport.sources.graphql.call.selection_text import FieldNode, Node, SelectionError
from gloveport.sources.graphql.rows import named_type


def check_merging(nodes: Iterable[Node]) -> None:
    """Raise SelectionError where two fields of the same name in the answer are different fields, or have other types.

    Stricter than GraphQL in one case: fields of two object types must agree where an interface has the field too.
    """
    fields = list(_fields(nodes))
    _check_types(fields)
    _check_calls(fields)


def _fields(nodes: Iterable[Node]) -> Iterator[FieldNode]:
    for node in nodes:
        if isinstance(node, FieldNode):
            yield node
        else:
            yield from _fields(node.below)


def _groups(fields: Iterable[FieldNode]) -> Iterable[list[FieldNode]]:
    groups: dict[str, list[FieldNode]] = {}
    for one in fields:
        groups.setdefault(one.key, []).append(one)
    return groups.values()


def _below(group: Iterable[FieldNode]) -> list[FieldNode]:
    return [one for above in group for one in _fields(above.below or ())]


def _check_types(fields: list[FieldNode]) -> None:
    for group in _groups(fields):
        shape = _shape(group[0])
        for other in group[1:]:
            if _shape(other) != shape:
                raise SelectionError(f"`{other.key}` has different types here: give one of them an alias", other.at)
        _check_types(_below(group))


def _check_calls(fields: list[FieldNode]) -> None:
    for group in _groups(fields):
        apart = all(one.in_object for one in group)
        parents: dict[str, list[FieldNode]] = {}
        for one in group:
            parents.setdefault(one.parent if apart else "", []).append(one)
        for same in parents.values():
            call = _call(same[0])
            for other in same[1:]:
                if _call(other) != call:
                    raise SelectionError(f"`{other.key}` stands for different fields: give one an alias", other.at)
            _check_calls(_below(same))


def _call(node: FieldNode) -> tuple[str, list[tuple[str, str]]]:
    return node.name, sorted((name, value.printed()) for name, value in node.arguments)


def _shape(node: FieldNode) -> str:
    return node.answer.replace(named_type(node.answer), "{}") if node.below else node.answer
