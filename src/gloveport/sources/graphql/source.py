"""A GraphQL schema as a source: a tool for each query and mutation, called with documents built from the schema."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any

import orjson
from graphql import GraphQLSchema

from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.sources.compiled_definition import ToolHead
from gloveport.sources.definition_cache import LazySchema
from gloveport.sources.graphql.connections import connection_of
from gloveport.sources.graphql.defaults import Defaults, text_of
from gloveport.sources.graphql.documents import PAGE, Documents
from gloveport.sources.graphql.endpoint import Endpoint
from gloveport.sources.graphql.replies import value_of
from gloveport.sources.graphql.roots import Root, root_types, roots_of
from gloveport.sources.graphql.schemas import Inputs, Outputs
from gloveport.sources.graphql.selection import written
from gloveport.sources.texts import clean
from gloveport.types import Page, Tool

PAGE_SIZE = 50
MOST_NAMED = 40
LONGEST_DEFAULT = 150


class GraphQLSource:
    """Queries and mutations of one endpoint; made by `open_graphql`."""

    def __init__(self, config: SourceConfig, schema: GraphQLSchema, endpoint: Endpoint) -> None:
        self.name = config.name
        self.slots = endpoint.slots
        self.title = endpoint.url
        self._endpoint = endpoint
        self._documents = Documents(schema)
        found, warnings = roots_of(schema)
        roots, unmatched = _filtered(found, config)
        self.warnings = (*warnings, *unmatched)
        self._roots = {f"{config.name}.{root.address}": root for root in roots}
        compiler = _Compiler(config.name, schema)
        self._tools = [compiler.tool(root) for root in roots]
        self.heads = tuple(compiler.head(root, tool) for root, tool in zip(roots, self._tools, strict=True))

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of each tool by its address."""
        return {f"{self.name}.{head.address}": head.fingerprint for head in self.heads}

    def tools(self) -> Sequence[Tool]:
        """Queries, then mutations, in the schema's order."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """What the root field answered; raises ToolError, with partial data in `data.data` where there is some."""
        return await self._ask(tool, args, paged=False)

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """One page of a connection, going forward; pages have `first` items, or 50."""
        root = self._roots[tool.address]
        if "last" in args or "before" in args:
            raise ToolError("pages go forward: `last` and `before` go backwards", code="bad-arguments", tool=tool.address)
        if "first" in root.field.args and "first" not in args:
            args = {**args, "first": PAGE_SIZE}
        value = await self._ask(tool, args if cursor is None else {**args, "after": cursor}, paged=True)
        place = value.pop(PAGE, None) if isinstance(value, dict) else None
        end = place.get("endCursor") if isinstance(place, dict) and place.get("hasNextPage") is True else None
        return Page(value, end if isinstance(end, str) and end != cursor else None)

    async def close(self) -> None:
        """Nothing to let go of: connections are egress's."""

    async def _ask(self, tool: Tool, args: dict[str, Any], *, paged: bool) -> Any:
        root = self._roots[tool.address]
        variables = {name: value for name, value in args.items() if name in root.field.args}
        select = None if root.select is None else args.get(root.select)
        text = None if select is None else written(select)
        document = self._documents.document(root, tuple(sorted(variables)), text, paged=paged)
        return value_of(await self._endpoint.send(document, variables), root.name)


def _filtered(roots: Iterable[Root], config: SourceConfig) -> tuple[list[Root], list[str]]:
    """The roots that `include` and `exclude` leave, and a warning for each pattern that matches nothing."""
    roots = list(roots)
    kept = [root for root in roots if not config.include or any(fnmatchcase(root.address, one) for one in config.include)]
    kept = [root for root in kept if not any(fnmatchcase(root.address, one) for one in config.exclude)]
    warnings = [
        f"the pattern {pattern!r} matches no query or mutation"
        for pattern in (*config.include, *config.exclude)
        if not any(fnmatchcase(root.address, pattern) for root in roots)
    ]
    return kept, warnings


class _Compiler:
    """Root fields → tools and their heads."""

    def __init__(self, source: str, schema: GraphQLSchema) -> None:
        self._source = source
        self._roots = root_types(schema)
        self._defaults = Defaults(schema)
        self._inputs = Inputs()
        self._outputs = Outputs(schema, self._defaults)

    def tool(self, root: Root) -> Tool:
        taken = self._inputs.schema(root, self._select(root))
        return Tool(
            address=f"{self._source}.{root.address}",
            description=clean(root.field.description) or f"The {root.operation} {root.name}; it gives {root.field.type}.",
            input_schema=taken,
            output_schema=LazySchema(partial(self._outputs.schema, root.field.type)),
            kind="graphql",
            writes=root.operation == "mutation",
            deprecated=root.field.deprecation_reason is not None,
            pages=root.connection is not None,
            named=tuple(taken["properties"]),
        )

    def head(self, root: Root, tool: Tool) -> ToolHead:
        """What is known of a tool without its schemas; the fingerprint covers those too."""
        digests = (self._inputs.digest(root, tool.input_schema), self._outputs.digest(root.field.type))
        told = orjson.dumps([root.operation, root.name, root.address, tool.description, *digests])
        return ToolHead(
            root.address,
            tool.description,
            tool.parameters,
            hashlib.sha256(told).hexdigest(),
            writes=tool.writes,
            deprecated=tool.deprecated,
            pages=tool.pages,
        )

    def _select(self, root: Root) -> dict[str, Any]:
        """The schema of the `select` argument: its forms, the default, and what there is beyond it."""
        if root.select is None:
            return {}
        type_, selection = root.type, self._defaults.selection(root.field.type)
        default = text_of(selection)
        shown = default if len(default) <= LONGEST_DEFAULT else f"{default[:LONGEST_DEFAULT]}…"
        said = f"Which fields of {type_.name} to give, as GraphQL text or nested lists; by default `{shown}`."
        if connection := connection_of(root.field.type):
            type_, selection = connection.node, selection[connection.items] or {}
            selection = selection["node"] or {} if connection.items == "edges" else selection
        fields = getattr(type_, "fields", {}) if type_.name not in self._roots else ()
        more = list(islice((name for name in fields if name not in selection), MOST_NAMED + 1))
        if more:
            said += f" {type_.name} also has {', '.join(more[:MOST_NAMED])}{'…' if len(more) > MOST_NAMED else '.'}"
        return {"type": ["string", "array", "object"], "description": clean(said)}
