"""The sandbox host: `/v1/sandbox` lends another Gloveport one fresh sandbox for one run, over a WebSocket."""

from __future__ import annotations

from functools import partial

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from gloveport.host.port import Gloveport
from gloveport.sandbox.engines.remote.loan import serve_loan
from gloveport.sandbox.engines.remote.messages import MAX_MESSAGE_BYTES
from gloveport.surfaces.http import CALLER_SCOPE_KEY
from gloveport.surfaces.http.admission import Admission


class SandboxHost:
    """Serves the WebSockets of callers. The guard has checked the token and the role of each."""

    def __init__(self, port: Gloveport, admission: Admission) -> None:
        self._port = port
        self._admission = admission

    async def serve(self, socket: WebSocket) -> None:
        """Lend a sandbox of this port until the caller or the run ends."""
        await socket.accept()
        slot = partial(self._admission.run_slot, socket.scope[CALLER_SCOPE_KEY].name)
        await serve_loan(_ServerSocket(socket), self._port.sandboxes, slot)


class _ServerSocket:
    """A WebSocket of the server with the interface of a sandbox's connection."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, message: bytes | str) -> None:
        try:
            if isinstance(message, str):
                await self._socket.send_text(message)
            else:
                await self._socket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError):  # RuntimeError: it was closed before
            raise ConnectionError("the caller is gone") from None

    async def receive(self) -> bytes | str:
        try:
            message = await self._socket.receive()
        except RuntimeError:
            raise ConnectionError("the caller is gone") from None
        if message["type"] != "websocket.receive":
            raise ConnectionError("the caller is gone")
        found = message.get("bytes")
        found = message.get("text", "") if found is None else found
        if len(found) > MAX_MESSAGE_BYTES:
            raise ConnectionError("the caller sent a message that is too large")
        return found

    async def close(self) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            try:
                await self._socket.close()
            except (WebSocketDisconnect, RuntimeError):
                return
