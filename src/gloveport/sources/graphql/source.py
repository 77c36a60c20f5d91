"""A GraphQL schema as a source: a tool for each query and mutation, called with documents built from the schema."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.sources import SourceInfo
from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.definition_cache import DefinitionCache, LazySchema
from gloveport.sources.graphql.call.document import PAGE_ALIAS, Documents
from gloveport.sources.graphql.call.endpoint import Endpoint
from gloveport.sources.graphql.call.response import value_of
from gloveport.sources.graphql.call.selection import select_text
from gloveport.sources.graphql.stored_schema import StoredSchema
from gloveport.types import Page, Tool

DEFAULT_PAGE_ITEMS = 50


class GraphQLSource:
    """Queries and mutations of one endpoint; made by `open_graphql`."""

    attributes_errors: Literal[True] = True

    def __init__(self, config: SourceConfig, cache: DefinitionCache, endpoint: Endpoint) -> None:
        self.name = config.name
        self._endpoint = endpoint
        self._schema = StoredSchema(cache)
        self._documents = Documents(self._schema)
        self._heads, unmatched = _filtered(cache.heads(), config.include, config.exclude)
        self._tools = tuple(self._tool(head) for head in self._heads)
        self._warnings = (*map(str, cache.facts["warnings"]), *unmatched)

    def source_info(self) -> SourceInfo:
        """Return the endpoint, its credential slots, and the fingerprint of each tool."""
        return SourceInfo(
            self._endpoint.url,
            slots=self._endpoint.slots,
            warnings=self._warnings,
            fingerprints={f"{self.name}.{head.address}": head.fingerprint for head in self._heads},
        )

    def tools(self) -> Sequence[Tool]:
        """Return queries, then mutations, in the schema's order."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return the value of the root field; raise ToolError, with partial data in `data.data` where there is some."""
        return await self._send(tool, args, paged=False)

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """Return one page of a connection, going forward; a page has `first` items, or 50."""
        if "last" in args or "before" in args:
            raise ToolError("pages go forward: `last` and `before` go backwards", code="bad-arguments", tool=tool.address)
        if "first" in self._schema.tool(self._address(tool)).arguments and "first" not in args:
            args = {**args, "first": DEFAULT_PAGE_ITEMS}
        value = await self._send(tool, args if cursor is None else {**args, "after": cursor}, paged=True)
        info = value.pop(PAGE_ALIAS, None) if isinstance(value, dict) else None
        end = info.get("endCursor") if isinstance(info, dict) and info.get("hasNextPage") is True else None
        return Page(value, end if isinstance(end, str) and end != cursor else None)

    def page_arguments(self, tool: Tool, args: dict[str, Any], cursor: str) -> dict[str, Any]:
        """Return the arguments with the cursor after which the page begins."""
        return {**args, "after": cursor}

    async def close(self) -> None:
        """Close the compiled schema. The connections belong to egress."""
        self._schema.close()

    async def _send(self, tool: Tool, args: dict[str, Any], *, paged: bool) -> Any:
        address = self._address(tool)
        row = self._schema.tool(address)
        variables = {name: value for name, value in args.items() if name in row.arguments}
        select = None if row.select is None else args.get(row.select)
        text = None if select is None else select_text(select)
        document = self._documents.document(address, tuple(sorted(variables)), text, paged=paged)
        reply = await self._endpoint.send(document, variables)
        return await off_loop_if(len(reply.body) > LARGE_BYTES, value_of, reply, row.name)

    def _address(self, tool: Tool) -> str:
        return tool.address.removeprefix(f"{self.name}.")

    def _tool(self, head: ToolHead) -> Tool:
        return Tool(
            f"{self.name}.{head.address}",
            head.description,
            LazySchema(self._schema.input_schema, head.address),
            LazySchema(self._schema.answer_schema, head.address),
            kind="graphql",
            writes=head.writes,
            deprecated=head.deprecated,
            pages=head.pages,
            named=head.parameters,
            described=head.described,
        )


def _filtered(
    heads: Sequence[ToolHead], include: Sequence[str], exclude: Sequence[str]
) -> tuple[list[ToolHead], list[str]]:
    """Return the tools that `include` and `exclude` leave, and a warning for each pattern that matches nothing."""
    kept = [head for head in heads if not include or any(fnmatchcase(head.address, one) for one in include)]
    kept = [head for head in kept if not any(fnmatchcase(head.address, one) for one in exclude)]
    warnings = [
        f"the pattern {pattern!r} matches no query or mutation"
        for pattern in (*include, *exclude)
        if not any(fnmatchcase(head.address, pattern) for head in heads)
    ]
    return kept, warnings
