"""The endpoints of what programs can call: tools, search, documented types and engines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gloveport.catalog import Catalog
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.sandbox.engines.registry import REMOTE_ENGINES
from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS
from gloveport.surfaces.agents.tools import AgentTools
from gloveport.surfaces.definition_changes import accept_definition, changed_tools, definition_digest
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import (
    ADMINS,
    AGENTS,
    EVERYBODY,
    PEOPLE,
    ApiCall,
    ApiEndpoint,
    ApiReply,
    no_such,
)
from gloveport.surfaces.http.token import Caller
from gloveport.types import DEFAULT_AGENT, Tool

_SEARCH = schemas.found(tools=schemas.rows({"type": "object"}), total=schemas.COUNT)
MAX_NAMES = 500
_NAMES_FILTER = {
    "below": {**schemas.TEXT, "maxLength": 300},
    "agent": {**schemas.TEXT, "maxLength": 64},
    "cursor": schemas.CURSOR,
}
_NAME = schemas.record({"name": schemas.TEXT, "path": schemas.TEXT, "tools": schemas.COUNT, "is_tool": schemas.FLAG})
_CHANGE = schemas.record(
    {
        "source": schemas.TEXT,
        "digest": schemas.TEXT,
        "tools": schemas.rows(schemas.record({"tool": schemas.TEXT, "diff": schemas.rows(schemas.TEXT)})),
    }
)
_ACCEPT = schemas.record({"source": schemas.TEXT, "digest": schemas.TEXT})


class CatalogApi:
    """What the caller's programs can call. An admin and an approver see what the agent `default` does, or a named one."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port
        self._tools: dict[str, AgentTools] = {}

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of tools and engines."""
        filters = {
            "source": {**schemas.TEXT, "maxLength": 64},
            "agent": {**schemas.TEXT, "maxLength": 64},
            "limit": schemas.LIMIT,
            "cursor": schemas.CURSOR,
        }
        tools = {200: schemas.page("tools", schemas.ref("Tool"))}
        tool = {200: schemas.found(tool=schemas.ref("Tool"), typescript=schemas.TEXT, python=schemas.TEXT, schema={})}
        described = {200: {"type": "object", "required": ["ok"]}}
        names = {200: schemas.found(names=schemas.rows(_NAME), total=schemas.COUNT, next=schemas.OPTIONAL_TEXT)}
        changes = {200: schemas.found(changes=schemas.rows(_CHANGE))}
        accepted = {200: schemas.found(source=schemas.TEXT, accepted=schemas.rows(schemas.TEXT))}
        engines = {200: schemas.found(engines=schemas.rows({"type": "object"}))}
        return [
            ApiEndpoint("GET", "/v1/tools", EVERYBODY, "List the tools.", self._list, tools, query=filters),
            ApiEndpoint("GET", "/v1/tools/{tool}", EVERYBODY, "Show a tool with its types.", self._get, tool),
            ApiEndpoint(
                "POST", "/v1/search", EVERYBODY, "Find tools.", self._search, {200: _SEARCH}, body=INPUT_SCHEMAS["search"]
            ),
            ApiEndpoint(
                "POST", "/v1/describe", AGENTS, "Show types.", self._describe, described, body=INPUT_SCHEMAS["describe"]
            ),
            ApiEndpoint("GET", "/v1/namespaces", EVERYBODY, "List names.", self._names, names, query=_NAMES_FILTER),
            ApiEndpoint("GET", "/v1/changes", PEOPLE, "List changed definitions.", self._changes, changes),
            ApiEndpoint("POST", "/v1/changes/accept", ADMINS, "Accept a definition.", self._accept, accepted, body=_ACCEPT),
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
        # A schema of OpenAPI is only read when somebody asks for it: this is the whole of it.
        schema = await off_loop(dict, entry.tool.input_schema)
        return ApiReply({"ok": True, "tool": self._row(catalog, entry.tool), **types, "schema": schema})

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

    async def _names(self, call: ApiCall) -> ApiReply:
        catalog = await self._catalog(call.caller, call.query.get("agent"))
        rows = await off_loop(_names_below, catalog, call.query.get("below", ""))
        found = [row for row in rows if row["name"] > call.query.get("cursor", "")]
        following = found[MAX_NAMES - 1]["name"] if len(found) > MAX_NAMES else None
        return ApiReply({"ok": True, "names": found[:MAX_NAMES], "total": len(rows), "next": following})

    async def _changes(self, call: ApiCall) -> ApiReply:
        return ApiReply({"ok": True, "changes": await off_loop(self._changed)})

    def _changed(self) -> list[dict[str, Any]]:
        by_source: dict[str, list[dict[str, Any]]] = {}
        for row in changed_tools(self._port):
            by_source.setdefault(row["tool"].partition(".")[0], []).append(row)
        return [
            {"source": source, "digest": definition_digest(self._port, source), "tools": tools}
            for source, tools in sorted(by_source.items())
        ]

    async def _accept(self, call: ApiCall) -> ApiReply:
        source = call.body["source"]
        rows = await off_loop(changed_tools, self._port, source)
        if call.body["digest"] != await off_loop(definition_digest, self._port, source):
            hint = "look at its changes again; nothing was accepted"
            raise OptionError(f"the source {source} has changed since you saw it", code="out-of-date", hint=hint)
        await accept_definition(self._port, source)
        return ApiReply({"ok": True, "source": source, "accepted": [row["tool"] for row in rows]})

    async def _engines(self, call: ApiCall) -> ApiReply:
        listed = []
        for engine in await self._port.sandboxes.engines(self._port.engines):
            row = asdict(engine) | {"available": engine.available}
            del row["fix"]  # for whoever sits at this machine
            if engine.problem and engine.name in REMOTE_ENGINES and call.caller.runs_programs:
                row["problem"] = "it can't be used now"  # where the sandbox host is, is for people
            listed.append(row)
        return ApiReply({"ok": True, "engines": listed})


def _names_below(catalog: Catalog, prefix: str) -> list[dict[str, Any]]:
    """Return the names directly below a namespace, each with the number of the tools that it holds."""
    start = f"{prefix}." if prefix else ""
    found: dict[str, dict[str, Any]] = {}
    for path in map(catalog.path_of, catalog.tools):
        if path.startswith(start):
            name, dot, _ = path.removeprefix(start).partition(".")
            row = found.setdefault(name, {"name": name, "path": f"{start}{name}", "tools": 0, "is_tool": False})
            row["tools"] += 1
            row["is_tool"] = row["is_tool"] or not dot
    return [found[name] for name in sorted(found)]
