"""Close connections on which a client sends no request, or sends one a byte at a time.

The library waits for ever: anyone who can connect could take every connection that there is, without a token.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_TIMEOUT_SECONDS = 30.0


class IdleTimeoutProtocol(H11Protocol):
    """Closes its connection when no request has begun for a while and none is being answered."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timer."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(IDLE_TIMEOUT_SECONDS, self._check, self.cycle, self._idle)

    def _check(self, last: Any, was_idle: bool) -> None:
        if was_idle and self._idle and self.cycle is last:
            self.transport.close()
        else:
            self._start_timer()

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete
