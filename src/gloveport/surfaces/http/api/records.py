"""The endpoints of what is kept: the audit log, agents with their tokens, and snippets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from gloveport.config.governance import AgentConfig
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.store.reading import last_events, open_for_reading
from gloveport.store.snippets import MAX_DESCRIPTION_CHARS, SavedSnippet, SnippetStore
from gloveport.store.tokens import ROLES, Role, TokenStore
from gloveport.store.verification import verify
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ADMINS, EVERYBODY, PEOPLE, ApiCall, ApiEndpoint, ApiReply, no_such
from gloveport.surfaces.http.api.store_reader import StoreReader, find_run
from gloveport.surfaces.record_documents import event_document, since_time, snippet_document
from gloveport.surfaces.saved_runs import check_saving, fingerprints, needed_tools, snippet_of
from gloveport.types import DEFAULT_AGENT

_HOLDER = schemas.record(
    {
        "name": schemas.TEXT,
        "role": {"enum": list(ROLES)},
        "created": {**schemas.OPTIONAL_NUMBER, "description": "when its token was made; null if it has none of its own"},
        "configured": {**schemas.FLAG, "description": "whether the settings have this agent; others are refused"},
        "tools": schemas.rows(schemas.TEXT),
        "limits": {"type": "object"},
    }
)
_NEW_TOKEN = schemas.record(
    {"name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}},
    role={"enum": list(ROLES), "default": "agent"},
)
_NEW_SNIPPET = schemas.record(
    {"run": schemas.RUN_NAME, "name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}},
    description={"type": "string", "maxLength": MAX_DESCRIPTION_CHARS},
)
_REPORT = schemas.found(
    events=schemas.COUNT,
    intact=schemas.FLAG,
    heads={"type": "object", "additionalProperties": schemas.TEXT},
    problems=schemas.rows(schemas.TEXT),
)


class RecordsApi:
    """The audit log and the tokens, for admins; snippets, for everybody who sees their tools."""

    def __init__(self, port: Gloveport, store: StoreReader, on_token_change: Callable[[], None]) -> None:
        self._port = port
        self._store = store
        self._on_token_change = on_token_change

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of the record."""
        text = {**schemas.TEXT, "maxLength": 200}
        filters = {
            "run": schemas.RUN_NAME,
            "tool": text,
            "kind": {
                "type": "string",
                "pattern": "^[a-z*-]{1,40}$",
                "description": "such as call-denied, or a pattern: run-*",
            },
            "since": schemas.SINCE,
            "limit": schemas.LIMIT,
            "cursor": schemas.CURSOR,
        }
        events = {200: schemas.page("events", {"type": "object"})}
        tokens = {200: schemas.found(agents=schemas.rows(_HOLDER))}
        token = {201: schemas.found(name=schemas.TEXT, role=schemas.TEXT, token=schemas.TEXT)}
        removed = {200: schemas.found(removed=schemas.TEXT)}
        snippets = {200: schemas.found(snippets=schemas.rows({"type": "object"}))}
        snippet = {200: schemas.found(snippet={"type": "object"}, code=schemas.TEXT)}
        saved = {201: snippet[200]}
        return [
            ApiEndpoint(
                "GET", "/v1/audit", PEOPLE, "List recorded events, the latest last.", self._audit, events, query=filters
            ),
            ApiEndpoint("GET", "/v1/audit/verification", PEOPLE, "Verify the chains.", self._verify, {200: _REPORT}),
            ApiEndpoint("GET", "/v1/agents", ADMINS, "List agents and other holders of tokens.", self._agents, tokens),
            ApiEndpoint("POST", "/v1/agents", ADMINS, "Create a token, shown once.", self._add, token, body=_NEW_TOKEN),
            ApiEndpoint("DELETE", "/v1/agents/{role}/{name}", ADMINS, "Delete a token.", self._remove, removed),
            ApiEndpoint("GET", "/v1/snippets", EVERYBODY, "List snippets.", self._snippets, snippets),
            ApiEndpoint("POST", "/v1/snippets", ADMINS, "Save a run as a snippet.", self._save, saved, body=_NEW_SNIPPET),
            ApiEndpoint("GET", "/v1/snippets/{name}", EVERYBODY, "Show a snippet.", self._snippet, snippet),
            ApiEndpoint("DELETE", "/v1/snippets/{name}", ADMINS, "Delete a snippet.", self._forget, removed),
        ]

    async def _audit(self, call: ApiCall) -> ApiReply:
        query, limit = call.query, call.query.get("limit", schemas.DEFAULT_PAGE_ROWS)
        before = schemas.from_cursor(query["cursor"], int, str, int) if "cursor" in query else None
        which = {"run": query.get("run", ""), "since": since_time(query.get("since"))}
        which |= {name: query.get(name) for name in ("tool", "kind")}

        def read(path: Path) -> tuple[list[Mapping[str, Any]], str | None]:
            with closing(open_for_reading(path)) as connection:
                found = last_events(connection, limit + 1, before=before, **which)
                shown = found[-limit:]
                rest = schemas.to_cursor(shown[0].at, shown[0].chain, shown[0].number) if len(found) > limit else None
                return [{**event_document(connection, event), "tool": event.tool} for event in shown], rest

        await self._port.flush()
        documents, rest = await self._store.do(read)
        return ApiReply({"ok": True, "events": documents, "next": rest})

    async def _verify(self, call: ApiCall) -> ApiReply:
        def read(path: Path) -> Any:
            with closing(open_for_reading(path)) as connection:
                return verify(connection, None)

        # Not in the thread of the store: it takes long, and others wait for that.
        report = await asyncio.to_thread(read, self._store.path)
        heads = {chain: head for chain, (_, head) in report.heads.items()}
        problems = [str(one) for one in report.problems]
        return ApiReply({"ok": True, "events": report.events, "intact": not problems, "heads": heads, "problems": problems})

    async def _agents(self, call: ApiCall) -> ApiReply:
        def tokens(store: TokenStore) -> list[tuple[str, Role, float | None]]:
            return [(name, role, created) for role in ROLES for name, created in store.names(role)]

        configured = {DEFAULT_AGENT: AgentConfig(DEFAULT_AGENT), **self._port.settings.governance.agents}
        found = await self._store.tokens(tokens)
        with_token = {name for name, role, _ in found if role in ("agent", "host")}
        rows = [_holder_row(name, "agent", None, configured) for name in configured if name not in with_token]
        rows += [_holder_row(*one, configured) for one in found]
        return ApiReply({"ok": True, "agents": rows})

    async def _add(self, call: ApiCall) -> ApiReply:
        name, role = call.body["name"], call.body.get("role", "agent")
        if name == DEFAULT_AGENT:
            raise OptionError(f"the agent {name} has the server's token", code="token-exists", hint="choose another name")
        token = await self._store.tokens(lambda tokens: tokens.add(name, role))
        self._on_token_change()
        return ApiReply({"ok": True, "name": name, "role": role, "token": token}, 201)

    async def _remove(self, call: ApiCall) -> ApiReply:
        name, role = call.path["name"], call.path["role"]
        known: Role | None = next((one for one in ROLES if one == role), None)
        if known is None or name not in dict(await self._store.tokens(lambda tokens: tokens.names(known))):
            raise no_such("agent", name)
        await self._store.tokens(lambda tokens: tokens.remove(name, known))
        self._on_token_change()
        return ApiReply({"ok": True, "removed": name})

    async def _snippets(self, call: ApiCall) -> ApiReply:
        found = await self._store.snippets(SnippetStore.all)
        seen = [one for one in found if await self._is_seen(call, one)]
        return ApiReply({"ok": True, "snippets": [snippet_document(one) for one in seen]})

    async def _save(self, call: ApiCall) -> ApiReply:
        id, name = call.body["run"], call.body["name"]
        await self._port.flush()
        run = await self._store.runs(lambda runs: find_run(runs, id))
        if run is None:
            raise no_such("run", id)
        check_saving(run)
        tools = await fingerprints(self._port, await self._store.snippets(lambda store: needed_tools(store, run)))
        named = name, call.body.get("description", "")
        made = await self._store.runs(lambda runs: snippet_of(runs, run, named, tools))
        await self._store.snippets(lambda store: store.save(made, call.caller.name))
        await self._port.flush()  # the next program has the change
        found = await self._store.snippets(lambda store: store.find(name))
        return ApiReply({"ok": True, "snippet": snippet_document(found), "code": made.code}, 201)

    async def _snippet(self, call: ApiCall) -> ApiReply:
        found = await self._find(call)
        return ApiReply({"ok": True, "snippet": snippet_document(found), "code": found.snippet.code})

    async def _forget(self, call: ApiCall) -> ApiReply:
        found = await self._find(call)
        await self._store.snippets(lambda store: store.remove(found.snippet.name, call.caller.name))
        await self._port.flush()  # the next program has the change
        return ApiReply({"ok": True, "removed": found.snippet.name})

    async def _find(self, call: ApiCall) -> SavedSnippet:
        name = call.path["name"]
        all_ = await self._store.snippets(SnippetStore.all)
        found = next((one for one in all_ if one.snippet.name == name), None)
        if found is None or not await self._is_seen(call, found):
            raise no_such("snippet", name)
        return found

    async def _is_seen(self, call: ApiCall, found: SavedSnippet) -> bool:
        """Return whether the caller sees a snippet: an agent does if it sees all of its tools."""
        if not call.caller.runs_programs:
            return True
        catalog = await self._port.catalog_of(call.caller.name)
        return all(catalog.entry(tool) is not None for tool in found.snippet.tools)


def _holder_row(name: str, role: Role, created: float | None, configured: Mapping[str, AgentConfig]) -> dict[str, Any]:
    """Return who may use the server: a holder of a token, or an agent of the settings that has none."""
    found = configured.get(name) if role in ("agent", "host") else None
    tools, limits = (list(found.tools), dict(found.limits)) if found is not None else ([], {})
    is_known = {"configured": found is not None, "tools": tools, "limits": limits}
    return {"name": name, "role": role, "created": created, **is_known}
