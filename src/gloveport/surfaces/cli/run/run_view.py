"""Shows a run on standard error while it happens: output and ended calls as lines, below them what it does now."""

from __future__ import annotations

import asyncio
import io
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gloveport.surfaces.documents import to_text
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Colour, Stream, clip, in_time, visible, visible_line
from gloveport.surfaces.waiting_line import DELAY_SECONDS, SPINNER
from gloveport.types import CallRecord, Event, LogLine
from gloveport.values import to_json

REDRAW_SECONDS = 0.05
_LEVELS: dict[str, tuple[str, tuple[Colour, ...]]] = {"warn": ("!", ("yellow",)), "error": ("✗", ("red",))}


class RunView:
    """Shows the events of one run. Every line has a mark and a label, so that text from a guest can't pass for ours."""

    def __init__(self, out: Stream, *, quiet: bool = False, opening: Callable[[], Sequence[str]] = tuple) -> None:
        self._out = out
        self._quiet = quiet
        self._opening = opening  # the names of the sources that the run waits for
        self._began: float | None = None
        self._active = 0.0  # when a call began or ended
        self._running: dict[int, tuple[CallRecord, float]] = {}
        self._waiting: list[str] = []  # lines that the next redraw writes above the running calls
        self._cancelled: Counter[str] = Counter()
        self._drawn = 0  # how many lines about the present the terminal shows now
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Show from now on what the run does: a run that takes long and makes no call is not stuck."""
        if self._out.moves and not self._quiet:
            self._began = self._active = time.monotonic()
            self._redraw_soon(DELAY_SECONDS)

    def event(self, event: Event) -> None:
        """Show an event."""
        if self._quiet:
            return
        if event.log is not None:
            self._log(event.log)
        elif event.kind == "emit":
            self.labelled("»", "emit", _shown(event.value))
        elif event.call is not None:
            self._call(event.call)

    def labelled(self, mark: str, label: str, text: str, *colours: Colour) -> None:
        """Show text from a guest after a label; further lines are indented below it."""
        first, line_end, rest = visible(text).partition("\n")
        head = f"{self._out.paint(mark, *colours)} {self._out.paint(f'{label:<5}', 'dim')} "
        self._show(head + self._out.paint(first, *colours) + f"{line_end}{rest}".replace("\n", "\n        "))

    def _log(self, line: LogLine) -> None:
        mark, colours = _LEVELS.get(line.level, (" ", ()))
        self.labelled(mark, line.level, line.text, *colours)

    def _call(self, call: CallRecord) -> None:
        self._active = time.monotonic()
        if call.status in ("running", "waiting"):
            self._running[call.id] = (call, self._active)
            self._redraw_soon()
            return
        before, _ = self._running.pop(call.id, (None, 0.0))
        if (call.error or "").startswith("cancelled:"):
            if before is not None and before.status == "waiting":
                return  # it was never made, and the question or the end of the run says so
            self._cancelled[call.tool] += 1  # reported once, at the end: hundreds of calls may be cancelled together
        else:
            self._show(self._ended(call))

    def _ended(self, call: CallRecord) -> str:
        took = in_time((call.seconds or 0.0) - (call.approval.seconds if call.approval else 0.0))
        paint = self._out.paint
        if call.status == "planned":
            return f"{paint('·', 'yellow')} {paint('plan ', 'dim')} {self._named(call, 0)}"
        if call.status == "ok":
            return f"{paint('✓', 'green')} {paint('call ', 'dim')} {self._named(call, len(took))}  {paint(took, 'dim')}"
        problem = visible_line(call.error or "failed")
        shown = f"{paint('✗', 'red')} {paint('call ', 'dim')} {self._named(call, len(took))}  {paint(took, 'dim')}"
        return f"{shown}\n        {paint(clip(problem, max(20, self._out.columns - 9)), 'red')}"

    def _named(self, call: CallRecord, reserved: int) -> str:
        name = visible_line(call.tool.removeprefix("local."))
        args = "" if call.args in (None, {}, []) else visible_line(to_text(to_json(call.args), indented=False))
        step = f"[{visible_line(call.step)}] " if call.step else ""
        return clip(f"{step}{name}({args})", self._out.columns - 11 - reserved)

    # Drawing. A terminal gets new lines with the next redraw, at most 50 ms later; any other output gets them at once.

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing in this block: somebody else uses the terminal. What happens meanwhile is shown after it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._out.moves:
            self._draw([])
        self._paused = True
        try:
            yield
        finally:
            self._paused = False
            self._draw([])
            self._redraw_soon()

    def _show(self, line: str) -> None:
        if not self._out.moves and not self._paused:
            self._out.line(line)
            return
        self._waiting.append(line)
        self._redraw_soon()

    def _redraw_soon(self, seconds: float = REDRAW_SECONDS) -> None:
        if not self._out.moves or self._paused:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None and self._timer.when() > loop.time() + seconds:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._redraw)

    def _redraw(self) -> None:
        self._timer = None
        live = self._live_lines()
        self._draw(live)
        if live or self._began is not None:
            self._redraw_soon(REDRAW_SECONDS if live else DELAY_SECONDS)

    def _draw(self, live: list[str]) -> None:
        back = f"\r\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        self._out.write(back + "".join(f"{line}\n" for line in [*self._waiting, *live]))
        self._waiting.clear()
        self._drawn = len(live)

    def _live_lines(self) -> list[str]:
        now = time.monotonic()
        spin = SPINNER[int(now * 10) % len(SPINNER)]
        room = self._out.lines - 2
        shown = list(self._running.values())[: room if len(self._running) <= room else room - 1]
        paint = self._out.paint
        lines = [
            f"{spin} {paint('call ', 'dim')} {self._named(call, 8)}  {paint(in_time(now - at), 'dim')}"
            if call.status == "running"
            else f"{paint('?', 'yellow')} {paint('call ', 'dim')} {self._named(call, 20)}  waits for approval"
            for call, at in shown
        ]
        if len(self._running) > len(shown):
            lines.append(f"{spin} {len(self._running) - len(shown)} more calls are running")
        if not lines and self._began is not None and now - self._active >= DELAY_SECONDS:
            opening = visible_line(", ".join(self._opening()))
            doing = clip(f"opening {opening}" if opening else "the program runs", self._out.columns - 20)
            lines.append(f"{spin} {paint('run  ', 'dim')} {doing}  {paint(in_time(now - self._began), 'dim')}")
        return lines

    def close(self) -> None:
        """Show the lines that still wait, and remove those about the present."""
        self._began = None
        if self._timer is not None:
            self._timer.cancel()
        if self._cancelled:
            calls = [name if count == 1 else f"{name} (× {count})" for name, count in self._cancelled.items()]
            self.labelled("✗", "call", f"cancelled: {', '.join(calls)}", "red")
        if self._out.moves:
            self._running.clear()
            self._redraw()
            if self._timer is not None:
                self._timer.cancel()


class RunLogHandler(logging.Handler):
    """Shows what Gloveport itself logs in the view, which escapes it for the terminal."""

    def __init__(self, view: RunView, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.WARNING)
        self._view = view
        self._loop = loop

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record; any thread may log."""
        text = as_typed(self.format(record))
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._view.labelled, "!", "host", text, "yellow")


class PrintCapture(io.TextIOBase):
    """Replaces standard output and error while tools run, so that what they print gets lines of its own."""

    def __init__(self, view: RunView, loop: asyncio.AbstractEventLoop) -> None:
        self._view = view
        self._loop = loop
        self._rest = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Take text from any thread, and pass whole lines to the view."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._loop.call_soon_threadsafe(self._view.labelled, " ", "print", line)
        return len(text)

    def fileno(self) -> int:
        """Return the descriptor that programs started by tools write to: standard error."""
        return 2

    def finish(self) -> None:
        """Show a last line that does not end with a line feed."""
        if self._rest:
            self._view.labelled(" ", "print", self._rest)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    plain = to_text(to_json(value), indented=False)
    return plain if len(plain) <= 80 else to_text(to_json(value), indented=True)
