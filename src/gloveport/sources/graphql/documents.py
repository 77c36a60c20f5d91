"""What is sent: a document of one operation with one root field, its arguments as variables."""

from __future__ import annotations

from functools import lru_cache

from graphql import GraphQLSchema

from gloveport.sources.graphql.connections import PAGE_INFO
from gloveport.sources.graphql.defaults import Defaults, text_of
from gloveport.sources.graphql.roots import Root
from gloveport.sources.graphql.selection import chosen

MOST_KEPT = 256
PAGE = "gloveport_page"
"""Where the place of the next page stands in an answer, whatever fields were chosen."""


class Documents:
    """The documents of one schema; the last ones are kept, because programs repeat themselves."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._defaults = Defaults(schema)
        self._kept = lru_cache(MOST_KEPT)(self._made)

    def document(self, root: Root, given: tuple[str, ...], select: str | None = None, *, paged: bool = False) -> str:
        """The document for a call that gives these arguments; raises ToolError when the choice is not allowed."""
        return self._kept(root, given, select, paged)

    def _made(self, root: Root, given: tuple[str, ...], select: str | None, paged: bool) -> str:
        if root.select is None:
            return _operation(root, given, "")
        if select is None:
            fields = text_of(self._defaults.selection(root.field.type))
        else:
            fields = chosen(select, _operation(root, given, "{ __typename } "), root.type, self._schema, self._defaults)
        if paged:
            fields += f" {PAGE}: pageInfo {{ {' '.join(PAGE_INFO)} }}"
        return _operation(root, given, f"{{ {fields} }} ")


def _operation(root: Root, given: tuple[str, ...], below: str) -> str:
    declared = ", ".join(f"${name}: {root.field.args[name].type}" for name in given)
    passed = ", ".join(f"{name}: ${name}" for name in given)
    field = f"{root.name}({passed})" if given else root.name
    return f"{root.operation} {root.name}{f'({declared})' if given else ''} {{ {field} {below}}}"
