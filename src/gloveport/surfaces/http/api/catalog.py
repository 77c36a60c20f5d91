"""The endpoints of what programs can call: tools, search, documented types, sources and engines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gloveport.catalog import Catalog
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.sandbox.engines.registry import REMOTE_ENGINES
from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS
from gloveport.surfaces.agents.tools import AgentTools
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import AGENTS, EVERYBODY, ApiCall, ApiEndpoint, ApiReply, no_such
from gloveport.surfaces.http.token import Caller
from gloveport.types import DEFAULT_AGENT, Tool

_SEARCH = schemas.found(tools=schemas.rows({"type": "object"}), total=schemas.COUNT)
_SOURCE = schemas.record(
    {
        "name": schemas.TEXT,
        "state": {"enum": ["open", "opening", "broken"]},
        "tools": schemas.COUNT,
        "writes": schemas.COUNT,
        "problem": schemas.OPTIONAL_TEXT,
    }
)


class CatalogApi:
    """What the caller's programs can call. An admin and an approver see what the agent `default` does, or a named one."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port
        self._tools: dict[str, AgentTools] = {}

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of tools, sources and engines."""
        filters = {
            "source": {**schemas.TEXT, "maxLength": 64},
            "agent": {**schemas.TEXT, "maxLength": 64},
            "limit": schemas.LIMIT,
            "cursor": schemas.CURSOR,
        }
        tools = {200: schemas.page("tools", schemas.ref("Tool"))}
        tool = {200: schemas.found(tool=schemas.ref("Tool"), typescript=schemas.TEXT, python=schemas.TEXT, schema={})}
        described = {200: {"type": "object", "required": ["ok"]}}
        sources = {200: schemas.found(sources=schemas.rows(_SOURCE))}
        engines = {200: schemas.found(engines=schemas.rows({"type": "object"}))}
        return [
            ApiEndpoint("GET", "/v1/tools", EVERYBODY, "List the tools.", self._list, tools, query=filters),
            ApiEndpoint("GET", "/v1/tools/{tool}", EVERYBODY, "Show a tool with its types.", self._get, tool),
            ApiEndpoint(
                "POST", "/v1/search", AGENTS, "Find tools.", self._search, {200: _SEARCH}, body=INPUT_SCHEMAS["search"]
            ),
            ApiEndpoint(
                "POST", "/v1/describe", AGENTS, "Show types.", self._describe, described, body=INPUT_SCHEMAS["describe"]
            ),
            ApiEndpoint("GET", "/v1/sources", EVERYBODY, "List the sources.", self._sources, sources),
            ApiEndpoint("GET", "/v1/engines", EVERYBODY, "List the engines.", self._engines, engines),
        ]

    async def _catalog(self, caller: Caller, agent: str | None = None) -> Catalog:
        name = caller.name if caller.runs_programs else agent or DEFAULT_AGENT
        try:
            self._port.agent(name)
        except OptionError:
            raise no_such("agent", name) from None
        return await self._port.catalog_of(name)

    async def _list(self, call: ApiCall) -> ApiReply:
        query, limit = call.query, call.query.get("limit", schemas.DEFAULT_PAGE_ROWS)
        catalog = await self._catalog(call.caller, query.get("agent"))
        after, source = query.get("cursor", ""), query.get("source")
        found = sorted(tool.address for tool in catalog.tools if tool.address > after and source in (None, tool.source))
        rows = [self._row(catalog, entry.tool) for address in found[:limit] if (entry := catalog.entry(address))]
        return ApiReply({"ok": True, "tools": rows, "next": found[limit - 1] if len(found) > limit else None})

    def _row(self, catalog: Catalog, tool: Tool) -> dict[str, Any]:
        entry = catalog.entry(tool.address)
        return {
            "path": catalog.path_of(tool),
            "address": tool.address,
            "description": tool.description,
            "source": tool.source,
            "writes": tool.writes,
            "suspended": entry.suspended if entry is not None else None,
        }

    async def _get(self, call: ApiCall) -> ApiReply:
        catalog = await self._catalog(call.caller)
        entry = catalog.entry(call.path["tool"])
        if entry is None:
            raise no_such("tool", call.path["tool"])
        tools, types = self._tools_of(call.caller), dict[str, str]()
        for language in ("typescript", "python"):
            answer = await tools.call("describe", {"paths": [entry.tool.address], "language": language})
            types[language] = answer.data["declarations"]
        return ApiReply({"ok": True, "tool": self._row(catalog, entry.tool), **types, "schema": entry.tool.input_schema})

    async def _search(self, call: ApiCall) -> ApiReply:
        catalog, source = await self._catalog(call.caller), call.body.get("source")
        if source is not None and source not in {one.name for one in catalog.sources}:
            raise no_such("source", source)
        answer = await self._tools_of(call.caller).call("search", dict(call.body))
        return ApiReply({"ok": True, "tools": answer.data["tools"], "total": answer.data["total"]})

    async def _describe(self, call: ApiCall) -> ApiReply:
        answer = await self._tools_of(call.caller).call("describe", dict(call.body))
        return ApiReply({"ok": True, **answer.data})

    def _tools_of(self, caller: Caller) -> AgentTools:
        agent = caller.name if caller.runs_programs else DEFAULT_AGENT
        if agent not in self._tools:
            self._tools[agent] = AgentTools(self._port, agent=agent)
        return self._tools[agent]

    async def _sources(self, call: ApiCall) -> ApiReply:
        catalog = await self._catalog(call.caller)
        rows = {source.name: _source_row(catalog, source.name) for source in catalog.sources}
        if not call.caller.runs_programs:  # what is wrong with a source is for people
            for one in self._port.problems:
                state = "opening" if one.opening else "broken" if one.broken else "open"
                row = rows.setdefault(one.source, _source_row(catalog, one.source))
                rows[one.source] = row | {"problem": one.message, "state": state}
        return ApiReply({"ok": True, "sources": list(rows.values())})

    async def _engines(self, call: ApiCall) -> ApiReply:
        listed = []
        for engine in await self._port.sandboxes.engines(self._port.engines):
            row = asdict(engine) | {"available": engine.available}
            if engine.problem and engine.name in REMOTE_ENGINES and call.caller.runs_programs:
                row["problem"] = "it can't be used now"  # where the sandbox host is, is for people
            listed.append(row)
        return ApiReply({"ok": True, "engines": listed})


def _source_row(catalog: Catalog, name: str) -> dict[str, Any]:
    tools = [tool for tool in catalog.tools if tool.source == name]
    return {
        "name": name,
        "state": "open",
        "tools": len(tools),
        "writes": sum(tool.writes for tool in tools),
        "problem": None,
    }
