"""A call → the document to send: one operation with one root field, its arguments as variables."""

from __future__ import annotations

from functools import lru_cache

from graphql import GraphQLSchema

from gloveport.sources.graphql.call.selection import check_selection
from gloveport.sources.graphql.compile.connection_type import PAGE_INFO
from gloveport.sources.graphql.compile.default_selection import DefaultSelections, to_text
from gloveport.sources.graphql.compile.roots import RootField

MAX_CACHED_DOCUMENTS = 256
PAGE_ALIAS = "gloveport_page"
"""The alias of `pageInfo` in an answer, whatever fields were selected."""


class Documents:
    """The documents for calls of one schema; the most recent ones are cached, because programs repeat calls."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._defaults = DefaultSelections(schema)
        self._cached = lru_cache(MAX_CACHED_DOCUMENTS)(self._build)

    def document(self, root: RootField, given: tuple[str, ...], select: str | None = None, *, paged: bool = False) -> str:
        """Return the document for a call with these arguments; raise ToolError when the selection is not allowed."""
        return self._cached(root, given, select, paged)

    def _build(self, root: RootField, given: tuple[str, ...], select: str | None, paged: bool) -> str:
        if root.select is None:
            return _operation(root, given, "")
        if select is None:
            fields = to_text(self._defaults.selection(root.field.type))
        else:
            operation = _operation(root, given, "{ __typename } ")
            fields = check_selection(select, operation, root.type, self._schema, self._defaults)
        if paged:
            fields += f" {PAGE_ALIAS}: pageInfo {{ {' '.join(PAGE_INFO)} }}"
        return _operation(root, given, f"{{ {fields} }} ")


def _operation(root: RootField, given: tuple[str, ...], below: str) -> str:
    declared = ", ".join(f"${name}: {root.field.args[name].type}" for name in given)
    passed = ", ".join(f"{name}: ${name}" for name in given)
    field = f"{root.name}({passed})" if given else root.name
    return f"{root.operation} {root.name}{f'({declared})' if given else ''} {{ {field} {below}}}"
