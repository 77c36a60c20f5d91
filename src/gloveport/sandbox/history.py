"""The recorded part of a run: what it has done so far, and whether the run that repeats it does the same.

What has meaning must agree: calls and their order, timers, emitted values, the result. Log lines and the texts of errors
may differ between versions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gloveport.errors import WireError
from gloveport.large_values import LARGE_BYTES
from gloveport.sandbox import wire
from gloveport.sandbox.start_event import Preparation, preparation_of, without_script
from gloveport.types import Divergence, LogLine, Recording, ToolCall

MAX_ID_DIGITS = 18


def prepared_events(events: Sequence[bytes]) -> tuple[Preparation | None, list[bytes]]:
    """Return how the process of a recorded run was prepared, and the events that it got after that."""
    preparation = preparation_of(events[0]) if events else None
    return preparation, [*events] if preparation is None else [without_script(events[0]), *events[1:]]


@dataclass(slots=True)
class PastCall:
    """A call in a recording, with the reply that the program got; None while there is none.

    `left` if it is a write that has left the host; `sent` are its arguments then, if a person has changed them. `started`
    and `ended` are microseconds since 1970.
    """

    call: ToolCall
    started: int
    is_sync: bool = False
    reply: list[Any] | None = None
    ended: int | None = None
    left: bool = False
    sent: dict[str, Any] | None = None


@dataclass(slots=True)
class RunHistory:
    """A recording, read: its calls, its output, and the state in which it leaves the run.

    `timer` is the time of a timer that has not fired yet, and `now` that of the last event, in microseconds since 1970.
    """

    recording: Recording
    calls: list[PastCall] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    emitted: list[Any] = field(default_factory=list)
    timer: float | None = None
    now: int = 0
    began: int = 0
    has_ended: bool = False
    value: Any = None
    repeated: RepeatedFrames | None = None
    sent: bytes = b""  # all events, as they are sent
    preparation: Preparation | None = None  # of the process that it began in
    is_repeated: bool = False
    """Whether a run has repeated all of it, and goes on."""

    @classmethod
    def of(cls, recording: Recording) -> RunHistory:
        """Read a recording. Do this for a long one in a thread."""
        found = cls(recording)
        by_id: dict[int, PastCall] = {}
        for place, (sender, content) in enumerate(recording.steps, 1):
            if sender == "write":
                id, sent = left_write(content)
                by_id[id].left, by_id[id].sent = True, sent or by_id[id].sent
            elif sender == "host":
                found._read_event(content, by_id)
            else:
                try:
                    found._read_frame(wire.decode(content), len(content), by_id)
                except WireError:
                    if place < len(recording.steps):
                        raise
                    # The host has refused this frame, and ended the run.
        found.repeated = RepeatedFrames(recording)
        found.preparation, events = prepared_events(recording.events)
        found.sent = b"".join(wire.pack(event) for event in events)
        return found

    @property
    def open_calls(self) -> list[PastCall]:
        """The calls without a reply, in their order."""
        return [past for past in self.calls if past.reply is None]

    def _read_event(self, content: bytes, by_id: dict[int, PastCall]) -> None:
        event = wire.decode(content)
        self.now = int(event[1])
        if event[0] == "start":
            self.began = self.now
        elif event[0] == "timer":
            self.timer = None
        elif event[0] == "reply" and (past := by_id.get(event[2])) is not None:
            past.reply, past.ended = event[3:], self.now

    def _read_frame(self, message: list[Any], size: int, by_id: dict[int, PastCall]) -> None:
        match message:
            case ["call" | "call_sync" as kind, int(id), str(name), list(args), *_]:
                call = ToolCall(id, name, args, size, wire.label_of(message))
                past = PastCall(call, self.now, is_sync=kind == "call_sync")
                by_id[id] = past
                self.calls.append(past)
            case ["timer", at]:
                self.timer = at
            case ["log", str(level), str(text)]:
                self.logs.append(LogLine(level, text))
            case ["emit", value]:
                self.emitted.append(value)
            case ["done", "value", value, _]:
                self.has_ended, self.value = True, value
            case ["done", *_]:
                self.has_ended = True


def left_write(step: bytes) -> tuple[int, dict[str, Any] | None]:
    """Return the call that has left the host, and its arguments if a person has changed them; raise WireError."""
    if step.isdigit() and len(step) <= MAX_ID_DIGITS:
        return int(step), None
    match wire.decode(step):
        case ["write", int(id), dict(sent)]:
            return id, sent
        case _:
            raise WireError("a write that names no call")


class RepeatedFrames:
    """Compares the frames of a run that is repeated with the recorded ones, in order."""

    def __init__(self, recording: Recording) -> None:
        self._left: deque[tuple[int, bytes]] = deque(
            (place, frame) for place, frame in enumerate(recording.frames) if not _is_log(frame)
        )
        self._logs: deque[tuple[int, bytes]] = deque(
            (place, frame) for place, frame in enumerate(recording.frames) if _is_log(frame)
        )
        self.difference: Divergence | None = None
        """The first difference that has no meaning."""

    @property
    def are_complete(self) -> bool:
        """Whether all recorded frames have come."""
        return not self._left

    def take(self, frame: bytes) -> Divergence | None:
        """Compare the next frame with the recorded one; return the difference if it has a meaning."""
        if _is_log(frame):
            place, recorded = self._logs.popleft() if self._logs else (-1, None)
            if frame != recorded and self.difference is None:
                self.difference = Divergence(place, recorded, frame, fatal=False)
            return None
        place, recorded = self._left.popleft()
        if frame == recorded:
            return None
        if _meaning(frame) != _meaning(recorded):
            return Divergence(place, recorded, frame)
        if self.difference is None:
            self.difference = Divergence(place, recorded, frame, fatal=False)
        return None

    def ended(self) -> Divergence:
        """Return the difference when the guest ends too early."""
        place, recorded = self._left[0]
        return Divergence(place, recorded, None)


def _is_log(frame: bytes) -> bool:
    return frame.startswith(b'["log"')


def _meaning(frame: bytes) -> Any:
    """Return what must agree in two frames. Those that take long to read must agree byte by byte."""
    if len(frame) > LARGE_BYTES:
        return frame
    try:
        message = wire.parse(frame)
    except WireError:
        return frame
    match message:
        case ["done", "value", value, *_]:
            return orjson.dumps(["done", value], option=orjson.OPT_SORT_KEYS)
        case ["done", "error", dict(error), *_]:
            return ["done", error.get("type"), error.get("code")]
        case ["call", id, name, args, _]:  # the label of a step has no meaning
            return orjson.dumps(["call", id, name, args], option=orjson.OPT_SORT_KEYS)
        case _:
            return orjson.dumps(message, option=orjson.OPT_SORT_KEYS)
