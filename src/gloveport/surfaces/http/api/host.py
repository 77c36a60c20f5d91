"""The WebSocket of a sandbox host at `/v1/host`: programs run here, and their tool calls go back to the caller.

Messages are JSON texts; docs/api.md lists them. One socket carries many runs at once. When it closes, its runs end: a call
that was sent and that is not read-only is `outcome-unknown` then, and is never sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import jsonschema_rs
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from gloveport.bridge.validation_errors import describe_errors
from gloveport.errors import GloveportError, OptionError
from gloveport.host.port import Gloveport
from gloveport.surfaces.documents import problem_document
from gloveport.surfaces.http import CALLER_SCOPE_KEY, HOST_PATH
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.hosted_run import HostedRun
from gloveport.surfaces.http.api.outbox import Outbox
from gloveport.surfaces.http.api.runs import CALLER_TOOLS, ENGINE_LANGUAGES, RUN_OPTIONS, RunsApi
from gloveport.surfaces.http.token import Caller
from gloveport.surfaces.request_bounds import read_host_message
from gloveport.types import Tool

BROKEN_PROTOCOL = 1008  # the code of RFC 6455 that closes a socket

logger = logging.getLogger("gloveport")

RUN: schemas.Schema = {
    **schemas.record(
        {"type": {"const": "run"}, "run": schemas.RUN_NAME, "code": schemas.TEXT},
        unnamed={**schemas.FLAG, "description": "`run` names it on this socket alone; the server chooses its id"},
        tools=CALLER_TOOLS,
        values={"enum": ["json", "tagged"], "default": "json"},
        quiet={**schemas.FLAG, "description": "only calls and the outcome are sent: the outcome has the output too"},
        **RUN_OPTIONS,
    ),
    "allOf": ENGINE_LANGUAGES,
}
_CALL = {"run": schemas.RUN_NAME, "call": {"type": "integer", "minimum": 1}}
MESSAGES: Mapping[str, schemas.Schema] = {
    "run": RUN,
    "result": schemas.record({"type": schemas.TEXT, **_CALL}, value=schemas.ANYTHING),
    "error": schemas.record(
        {
            "type": schemas.TEXT,
            **_CALL,
            "error": schemas.record({"message": schemas.TEXT}, code=schemas.TEXT, data=schemas.ANYTHING),
        }
    ),
    "cancel": schemas.record({"type": schemas.TEXT, "run": schemas.RUN_NAME}),
}
_VALIDATORS = {kind: jsonschema_rs.validator_for(dict(schema)) for kind, schema in MESSAGES.items()}


class HostApi:
    """The sockets of a server."""

    def __init__(self, port: Gloveport, admission: Admission, runs: RunsApi) -> None:
        self.port = port
        self.admission = admission
        self.runs = runs

    @property
    def routes(self) -> list[BaseRoute]:
        """The route of the WebSocket."""
        return [WebSocketRoute(HOST_PATH, self._serve)]

    async def _serve(self, socket: WebSocket) -> None:
        await socket.accept()
        await _HostSocket(self, socket, socket.scope[CALLER_SCOPE_KEY]).serve()


class _HostSocket:
    """One socket: reads messages in their order, and ends its runs when it closes."""

    def __init__(self, api: HostApi, socket: WebSocket, caller: Caller) -> None:
        self._api = api
        self._socket = socket
        self._caller = caller
        self._runs: dict[str, HostedRun] = {}
        self._outbox = Outbox(socket)

    async def serve(self) -> None:
        sending = asyncio.create_task(self._outbox.send_all())
        reading = asyncio.create_task(self._read_all())
        try:
            await asyncio.wait([sending, reading], return_when=asyncio.FIRST_COMPLETED)
            for run in self._runs.values():
                run.caller_is_gone()
            if reading.done() and (problem := reading.exception()) is not None:
                await self._close(problem)
        finally:
            sending.cancel()
            reading.cancel()
            tasks = [run.task for run in self._runs.values() if run.task is not None]
            await asyncio.gather(sending, reading, *tasks, return_exceptions=True)

    async def _close(self, problem: BaseException) -> None:
        """Close the socket, because of a message that is none of the protocol, or a defect of ours."""
        if isinstance(problem, WebSocketDisconnect):
            return
        if not isinstance(problem, ValueError):
            logger.error("a socket at %s failed", HOST_PATH, exc_info=problem)
        reason = f"the message {problem}" if isinstance(problem, ValueError) else "internal error"
        await self._socket.close(BROKEN_PROTOCOL, reason.encode()[:120].decode(errors="ignore"))

    async def _read_all(self) -> None:
        while True:
            event = await self._socket.receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            if text is None:
                raise ValueError("is not a text")
            data = text.encode("utf-8", "replace")
            await self._take(await read_host_message(data), len(data))

    async def _take(self, message: dict[str, Any], size: int) -> None:
        """Handle a message; raise ValueError for one that is none of the protocol."""
        kind = message.get("type")
        validator = _VALIDATORS.get(kind) if isinstance(kind, str) else None
        if kind == "run":
            self._start(message, size)
            return
        if validator is None or not validator.is_valid(message):
            raise ValueError(f"is none that a caller sends: {kind!r:.40}")
        run = self._runs.get(message["run"])
        if run is None:
            return  # it has ended meanwhile: what is said to it counts for nothing
        if kind == "cancel":
            await run.cancel()
        elif kind == "result":
            await run.answered(message["call"], message.get("value"))
        else:
            run.failed(message["call"], message["error"])

    def _start(self, message: dict[str, Any], size: int) -> None:
        name, admission, admitted = message.get("run"), self._api.admission, ExitStack()
        if not isinstance(name, str):
            raise ValueError("starts a run without a name")
        try:
            if not _VALIDATORS["run"].is_valid(message):
                tool = Tool("host.run", "", dict(RUN))
                raise OptionError(describe_errors(_VALIDATORS["run"], message, tool), code="bad-request")
            if name in self._runs:
                raise OptionError(f"the run {name!r} goes on already", code="run-id-taken", hint="choose another id")
            admission.check(self._caller.name)
            admitted.enter_context(admission.memory())(size)
        except GloveportError as error:
            admitted.close()
            self._outbox.put({"type": "refused", "run": name[:64], "error": problem_document(error)["error"]})
            return
        # Counted at once, not when the task begins: many messages may arrive in one turn of the loop.
        admitted.enter_context(admission.request(self._caller.name))
        form = {"tagged": message.get("values") == "tagged", "quiet": message.get("quiet", False)}
        run = self._runs[name] = HostedRun(name, self._caller, self._outbox, self._api.runs, **form)
        run.task = asyncio.create_task(run.serve(message, admitted))
        run.task.add_done_callback(lambda _: self._ended(name, admitted))

    def _ended(self, name: str, admitted: ExitStack) -> None:
        admitted.close()
        self._runs.pop(name, None)
