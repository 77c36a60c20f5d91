"""Ends what a request left open when its token counts no longer: a WebSocket, or an answer that is a stream of events.

Whoever opened it then sees the connection close, and the application sees a client that has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from starlette.types import Message, Receive, Scope, Send

CHECK_SECONDS = 2.0
REVOKED = 1008  # the code of RFC 6455 for a policy that a connection violates
SOCKET_END: Message = {"type": "websocket.close", "code": REVOKED, "reason": "the token counts no longer"}
STREAM_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class RevocableConnection:
    """The two ends of one request, for an application: `receive` reports a client that has gone when the token is revoked.

    It begins to watch when the application waits for its client: after the body, so not for a short answer.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, is_valid: Callable[[], Awaitable[bool]]) -> None:
        self._is_socket = scope["type"] == "websocket"
        self._inner_receive = receive
        self._inner_send = send
        self._is_valid = is_valid
        self._watching: asyncio.Task[None] | None = None
        self._receiving: asyncio.Timeout | None = None
        self._is_revoked = self._is_ended = self._has_begun = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._is_revoked and self._has_begun and not self._is_ended:
            await self._inner_send(SOCKET_END if self._is_socket else STREAM_END)

    async def receive(self) -> Message:
        """Return what the client says next, or that it has gone."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        if self._is_revoked:
            return self._gone
        try:
            async with asyncio.timeout(None) as self._receiving:  # no task of its own: it would cost two turns of the loop
                return await self._inner_receive()
        except TimeoutError:
            return self._gone
        finally:
            self._receiving = None

    async def send(self, message: Message) -> None:
        """Send a message of the application. After the revocation, nothing more goes out."""
        if self._is_revoked:
            return
        kind = message["type"]
        self._has_begun |= kind in ("http.response.start", "websocket.accept")
        self._is_ended |= kind == "websocket.close" or (
            kind == "http.response.body" and not message.get("more_body", False)
        )
        await self._inner_send(message)

    @property
    def _gone(self) -> Message:
        return {"type": "websocket.disconnect", "code": REVOKED} if self._is_socket else {"type": "http.disconnect"}

    async def _watch(self) -> None:
        while not self._is_revoked:
            await asyncio.sleep(CHECK_SECONDS)
            self._is_revoked = not await self._is_valid()
        if self._receiving is not None:
            self._receiving.reschedule(asyncio.get_running_loop().time())
