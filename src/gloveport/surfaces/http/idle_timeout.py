"""How long the HTTP server waits for a client that has connected and says nothing, or says it a byte at a time.

The library waits for ever: whoever can connect would need no token to take every connection that there is.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 30.0


class IdleTimeoutProtocol(H11Protocol):
    """A connection that is closed when no request has begun on it for a while, and none is being answered."""

    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Somebody has connected."""
        super().connection_made(transport)
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._looking = self.loop.call_later(HEAD_SECONDS, self._look, self.cycle, self._idle)

    def _look(self, last: Any, was_idle: bool) -> None:
        if was_idle and self._idle and self.cycle is last:
            self.transport.close()
        else:
            self._look_later()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete
