"""The endpoints of sessions: list them, put files into their workspaces, and take files out."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.host.sessions.agent_session import AgentSession
from gloveport.large_values import off_loop
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import AGENTS, ApiCall, ApiEndpoint, ApiReply, no_such
from gloveport.surfaces.http.api.runs import RunsApi
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.record_documents import session_document

_AGENT = {**schemas.TEXT, "maxLength": 64, "description": "the agent whose session it is; only an admin may name one"}
_PATH = {
    **schemas.TEXT,
    "maxLength": 1024,
    "minLength": 1,
    "format": "workspace-path",
    "description": "below /workspace: names that can be printed, with `/` between them",
}
_FILE = schemas.record({"path": schemas.TEXT, "size": schemas.COUNT})
_SESSION = schemas.record(
    {
        "agent": schemas.TEXT,
        "session": schemas.TEXT,
        "files": schemas.COUNT,
        "bytes": schemas.COUNT,
        "used": {"type": "string", "format": "date-time"},
        "run": schemas.OPTIONAL_TEXT,
    }
)
_BODY = schemas.record(
    {"content": {**schemas.TEXT, "contentEncoding": "base64", "format": "byte", "description": "the file in base64"}}
)


class SessionsApi:
    """The sessions of the caller, or of an agent that an admin names. Those of other agents are not there (M11)."""

    def __init__(self, port: Gloveport, store: StoreReader, runs: RunsApi) -> None:
        self._port = port
        self._store = store
        self._runs = runs

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of sessions."""
        path, agent = "/v1/sessions/{session}", {"agent": _AGENT}
        file: dict[str, Any] = {"query": {"path": _PATH, **agent}, "needs": ("path",)}
        listed = {200: schemas.found(sessions=schemas.rows(_SESSION))}
        files = {200: schemas.found(files=schemas.rows(_FILE))}
        content = {200: schemas.found(path=schemas.TEXT, size=schemas.COUNT, content=schemas.TEXT)}
        put = {200: schemas.found(path=schemas.TEXT, size=schemas.COUNT)}
        removed = {200: schemas.found(removed=schemas.TEXT)}
        return [
            ApiEndpoint("GET", "/v1/sessions", AGENTS, "List sessions.", self._list, listed, query=agent),
            ApiEndpoint("DELETE", path, AGENTS, "Delete a session.", self._remove, removed, query=agent),
            ApiEndpoint("GET", f"{path}/files", AGENTS, "List the files of a session.", self._files, files, query=agent),
            ApiEndpoint("GET", f"{path}/file", AGENTS, "Take a file out, in base64.", self._get, content, **file),
            ApiEndpoint("POST", f"{path}/file", AGENTS, "Put a file in.", self._put, put, **file, body=_BODY),
            ApiEndpoint("DELETE", f"{path}/file", AGENTS, "Delete a file or a folder.", self._delete, removed, **file),
        ]

    async def _list(self, call: ApiCall) -> ApiReply:
        named = call.query.get("agent")
        agent = self._runs.agent(call.caller, named) if named is not None or call.caller.runs_programs else None
        found = await self._store.sessions(lambda store: store.all(agent))
        return ApiReply({"ok": True, "sessions": [session_document(one) for one in found]})

    async def _remove(self, call: ApiCall) -> ApiReply:
        await self._session(call).remove()
        return ApiReply({"ok": True, "removed": call.path["session"]})

    async def _files(self, call: ApiCall) -> ApiReply:
        session = self._session(call)
        if not await session.exists():
            raise no_such("session", session.name)
        found = await session.files.list()
        return ApiReply({"ok": True, "files": [{"path": one.path, "size": one.size} for one in found]})

    async def _get(self, call: ApiCall) -> ApiReply:
        path = call.query["path"]
        content = await self._session(call).files.get(path)
        text = await off_loop(lambda: base64.b64encode(content).decode())
        return ApiReply({"ok": True, "path": path, "size": len(content), "content": text})

    async def _put(self, call: ApiCall) -> ApiReply:
        path = call.query["path"]
        try:
            content = await off_loop(lambda: base64.b64decode(call.body["content"], validate=True))
        except (binascii.Error, ValueError):
            raise OptionError("content is not base64", code="bad-request") from None
        await self._session(call).files.put(path, content)
        return ApiReply({"ok": True, "path": path, "size": len(content)})

    async def _delete(self, call: ApiCall) -> ApiReply:
        await self._session(call).files.remove(call.query["path"])
        return ApiReply({"ok": True, "removed": call.query["path"]})

    def _session(self, call: ApiCall) -> AgentSession:
        agent = self._runs.agent(call.caller, call.query.get("agent"))
        return self._port.session(call.path["session"], agent=agent)
