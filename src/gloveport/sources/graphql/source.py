"""A GraphQL schema as a source: a tool for each query and mutation, called with documents built from the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphql import GraphQLSchema

from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.sources import SourceInfo
from gloveport.sources.graphql.call.document import PAGE_ALIAS, Documents
from gloveport.sources.graphql.call.endpoint import Endpoint
from gloveport.sources.graphql.call.response import value_of
from gloveport.sources.graphql.call.selection import select_text
from gloveport.sources.graphql.compile.compiler import compile_schema
from gloveport.types import Page, Tool

DEFAULT_PAGE_ITEMS = 50


class GraphQLSource:
    """Queries and mutations of one endpoint; made by `open_graphql`."""

    def __init__(self, config: SourceConfig, schema: GraphQLSchema, endpoint: Endpoint) -> None:
        self.name = config.name
        self._endpoint = endpoint
        self._documents = Documents(schema)
        self._compiled = compile_schema(config.name, schema, include=config.include, exclude=config.exclude)

    def source_info(self) -> SourceInfo:
        """Return the endpoint, its credential slots, and the fingerprint of each tool."""
        fingerprints = {f"{self.name}.{head.address}": head.fingerprint for head in self._compiled.heads}
        return SourceInfo(
            self._endpoint.url,
            slots=self._endpoint.slots,
            warnings=self._compiled.warnings,
            fingerprints=fingerprints,
        )

    def tools(self) -> Sequence[Tool]:
        """Return queries, then mutations, in the schema's order."""
        return self._compiled.tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return the value of the root field; raise ToolError, with partial data in `data.data` where there is some."""
        return await self._send(tool, args, paged=False)

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """Return one page of a connection, going forward; a page has `first` items, or 50."""
        root = self._compiled.roots[tool.address]
        if "last" in args or "before" in args:
            raise ToolError("pages go forward: `last` and `before` go backwards", code="bad-arguments", tool=tool.address)
        if "first" in root.field.args and "first" not in args:
            args = {**args, "first": DEFAULT_PAGE_ITEMS}
        value = await self._send(tool, args if cursor is None else {**args, "after": cursor}, paged=True)
        info = value.pop(PAGE_ALIAS, None) if isinstance(value, dict) else None
        end = info.get("endCursor") if isinstance(info, dict) and info.get("hasNextPage") is True else None
        return Page(value, end if isinstance(end, str) and end != cursor else None)

    async def close(self) -> None:
        """Do nothing: the connections are egress's."""

    async def _send(self, tool: Tool, args: dict[str, Any], *, paged: bool) -> Any:
        root = self._compiled.roots[tool.address]
        variables = {name: value for name, value in args.items() if name in root.field.args}
        select = None if root.select is None else args.get(root.select)
        text = None if select is None else select_text(select)
        document = self._documents.document(root, tuple(sorted(variables)), text, paged=paged)
        reply = await self._endpoint.send(document, variables)
        return await off_loop_if(len(reply.body) > LARGE_BYTES, value_of, reply, root.name)
