"""A line in the terminal that says what a command waits for, and for how long; it appears only after a moment."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from gloveport.surfaces.terminal import Stream, clip, in_time

DELAY_SECONDS = 0.3
REDRAW_SECONDS = 0.1
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class WaitingLine:
    """Shows one line while its `async with` block runs, and removes it at the end; nothing where no cursor can move."""

    def __init__(self, out: Stream, text: str) -> None:
        self._out = out
        self._text = text
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if self._out.moves:
            self._task = asyncio.create_task(self._show())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _show(self) -> None:
        began = time.monotonic()
        await asyncio.sleep(DELAY_SECONDS)
        try:
            while True:
                passed = time.monotonic() - began
                line = f"{SPINNER[int(passed * 10) % len(SPINNER)]} {self._text} … {in_time(passed)}"
                self._out.write("\r\x1b[K" + clip(line, self._out.columns - 1))
                await asyncio.sleep(REDRAW_SECONDS)
        finally:
            self._out.write("\r\x1b[K")
