"""One line for each run of a server and each call that a run made: when, for which agent, what, its status, how long."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from queue import SimpleQueue
from typing import Literal

import msgspec

from gloveport.errors import GloveportError
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Colour, Stream, clip, in_time, visible, visible_line
from gloveport.types import CallRecord, Event

LogFormat = Literal["text", "json"]
MAX_QUEUED_LINES = 1000  # beyond these, lines are dropped and counted: a reader that stops must not stop the server
LINGER_SECONDS = 0.05  # the lines of so long are written together: to wake a thread costs as much as a line
MAX_NAME_CHARS, MAX_ERROR_CHARS = 60, 200
FLUSH_SECONDS = 1.0


class _WarningFormat(logging.Formatter):
    """Shows a warning with its commands as a person can paste them. What others wrote can't control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(as_typed(super().format(record)))


def log_warnings() -> None:
    """Write the warnings of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_WarningFormat("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


@dataclass(frozen=True, slots=True)
class Activity:
    """A run that ended, or one of its calls. `agent` is what the client calls itself; `tool` is `execute` for a run."""

    kind: Literal["run", "call"]
    agent: str
    run: str
    tool: str
    status: str
    seconds: float
    calls: int | None = None
    error: str | None = None
    setting: str | None = None

    @classmethod
    def of_call(cls, agent: str, run: str, call: CallRecord) -> Activity:
        """Return the activity of a call that ended."""
        about = call.tool.removeprefix("local."), call.status, call.seconds or 0.0, None, call.error, call.setting
        return cls("call", agent, run, *about)


OnActivity = Callable[[Activity], None]


class RunActivity:
    """Reports the calls of one run, and its end."""

    def __init__(self, agent: str, report: OnActivity) -> None:
        self.run = ""
        self._agent = agent
        self._report = report
        self._began = time.monotonic()
        self._calls = 0

    def on_event(self, event: Event) -> None:
        """Report a call that ended."""
        if event.kind == "call-ended" and event.call is not None:
            self.run = event.run
            self._calls += 1
            self._report(Activity.of_call(self._agent, event.run, event.call))

    def ended(self, status: str, error: str | None, setting: str | None = None) -> None:
        """Report the end of the run."""
        seconds = time.monotonic() - self._began
        self._report(Activity("run", self._agent, self.run, "execute", status, seconds, self._calls, error, setting))

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Report an error or a cancellation as the end of the run, and pass it on."""
        try:
            yield
        except GloveportError as error:
            self.ended("failed", error.code)
            raise
        except asyncio.CancelledError:
            self.ended("cancelled", None)
            raise


class ActivityLog:
    """Writes activities to a stream, in a thread of its own. Text from clients and programs can't control the terminal."""

    def __init__(self, out: Stream, form: LogFormat, clock: Callable[[], datetime] = datetime.now) -> None:
        self._out = out
        self._form = form
        self._clock = clock
        self._queued: deque[tuple[datetime, Activity]] = deque()
        self._lost = 0
        self._is_woken = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._closing = threading.Event()
        self._writer = threading.Thread(target=self._write, name="activity log", daemon=True)
        self._writer.start()

    def record(self, activity: Activity) -> None:
        """Queue the line of an activity; this never waits."""
        if len(self._queued) >= MAX_QUEUED_LINES:
            self._lost += 1
            return
        self._queued.append((self._clock(), activity))
        if not self._is_woken:
            self._is_woken = True
            self._wake.put(None)

    def close(self) -> None:
        """Write what is queued, for as long as a reader takes it."""
        self._closing.set()
        self._wake.put(None)
        self._writer.join(FLUSH_SECONDS)

    def _write(self) -> None:
        while not (self._closing.is_set() and not self._queued):
            self._wake.get()
            self._closing.wait(LINGER_SECONDS)
            self._is_woken = False  # before the last look: whoever queues a line after it wakes the thread
            line = self._json if self._form == "json" else self._text
            if lines := [line(*self._queued.popleft()) for _ in range(len(self._queued))]:
                self._out.line("\n".join(lines))
            if self._lost and not self._queued:
                self._report_loss()

    def _report_loss(self) -> None:
        lost, self._lost = self._lost, 0
        json = msgspec.json.encode({"lost": lost}).decode()
        self._out.line(json if self._form == "json" else f"{lost:,} lines were lost")

    def _json(self, at: datetime, activity: Activity) -> str:
        row = asdict(activity)
        seconds = row.pop("seconds")
        row = {"time": at.astimezone().isoformat(timespec="milliseconds"), **row, "ms": round(seconds * 1000, 1)}
        shown = {name: _bounded(value, MAX_ERROR_CHARS) if isinstance(value, str) else value for name, value in row.items()}
        return msgspec.json.encode({name: value for name, value in shown.items() if value is not None}).decode()

    def _text(self, at: datetime, activity: Activity) -> str:
        colours: dict[str, Colour] = {"ok": "green", "completed": "green", "failed": "red"}
        paint = self._out.paint
        head = f"{at:%H:%M:%S}  {_bounded(activity.agent, MAX_NAME_CHARS)}  "
        name = f"{'' if activity.kind == 'run' else '  '}{_bounded(activity.tool, MAX_NAME_CHARS)}"
        status = paint(activity.status, colours.get(activity.status, "yellow"))
        calls = "" if activity.calls is None else f"  {activity.calls:,} call{'s' * (activity.calls != 1)}"
        error = f"  {_bounded(activity.error, MAX_ERROR_CHARS)}" if activity.error else ""
        setting = f"  (setting: {_bounded(activity.setting, MAX_ERROR_CHARS)})" if activity.setting else ""
        return f"{paint(head, 'dim')}{name}  {status}  {in_time(activity.seconds)}{calls}{error}{setting}"


def _bounded(text: str, columns: int) -> str:
    return clip(visible_line(text[: columns * 8]), columns)
