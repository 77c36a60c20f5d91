"""A call → the document to send: one operation with one root field, its arguments as variables."""

from __future__ import annotations

from functools import lru_cache

from gloveport.sources.graphql.call.selection import check_selection
from gloveport.sources.graphql.rows import ToolRow
from gloveport.sources.graphql.stored_schema import StoredSchema

MAX_CACHED_DOCUMENTS = 256
PAGE_ALIAS = "gloveport_page"
"""The alias of `pageInfo` in an answer, whatever fields were selected."""
PAGE_INFO = f"{PAGE_ALIAS}: pageInfo {{ hasNextPage endCursor }}"


class Documents:
    """The documents for calls of one schema; the most recent ones are cached, because programs repeat calls."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema
        self._cached = lru_cache(MAX_CACHED_DOCUMENTS)(self._build)

    def document(self, address: str, given: tuple[str, ...], select: str | None = None, *, paged: bool = False) -> str:
        """Return the document for a call with these arguments; raise ToolError when the selection is not allowed."""
        return self._cached(address, given, select, paged)

    def _build(self, address: str, given: tuple[str, ...], select: str | None, paged: bool) -> str:
        tool = self._schema.tool(address)
        if tool.select is None:
            return _operation(tool, given, "")
        fields = check_selection(tool.default if select is None else select, tool.answer, self._schema)
        return _operation(tool, given, f"{{ {fields} {PAGE_INFO} }} " if paged else f"{{ {fields} }} ")


def _operation(tool: ToolRow, given: tuple[str, ...], below: str) -> str:
    declared = ", ".join(f"${name}: {tool.arguments[name]}" for name in given)
    passed = ", ".join(f"{name}: ${name}" for name in given)
    field = f"{tool.name}({passed})" if given else tool.name
    return f"{tool.operation} {tool.name}{f'({declared})' if given else ''} {{ {field} {below}}}"
