"""One program in one worker, from its start event to its end.

Everything the guest can observe goes through `RunAttempt._event`, in one order: that order is the run. Everything it says
is hostile: it gets what its run may call, and nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import orjson

from gloveport.errors import GloveportError, ToolError, ValueCrossingError, WireError
from gloveport.sandbox import wire
from gloveport.sandbox.eager import EagerTaskStarter
from gloveport.sandbox.exit_reason import GuestNotes, exit_error, memory_error
from gloveport.sandbox.jail.privileges import MAX_THREADS
from gloveport.sandbox.worker import Worker
from gloveport.types import MIB, Limits, LogLine, Program, ToolCall
from gloveport.values import encode, from_wire

MAX_SYNC_CALLS = 10_000
MAX_TIMER_MICROSECONDS = 2**62  # microseconds that a timer may be away from the epoch
EMIT_OVERHEAD_BYTES = 64  # bytes of the budget for results that an emitted value takes beside its own
LOG_LINE_OVERHEAD_BYTES = 16  # bytes of the log budget that a line takes beside its text
MEMORY_CHECK_SECONDS = 0.05
MAX_SLICE_SECONDS = 0.01
HIGH_WATER_BYTES = 8 * MIB  # of replies that wait for the guest; above it nothing more of it is handled
MAX_UNSENT_BYTES = 128 * MIB
MAX_IN_FLIGHT_BYTES = 64 * MIB
MAX_ERROR_DATA_BYTES = 1 * MIB
MAX_TIMERS = 1_000_000
MAX_TOTAL_BYTES = 512 * MIB
LOG_LEVELS = frozenset({"debug", "log", "info", "warn", "error"})
CANCEL_GRACE_SECONDS = 1.0  # for a cancelled call to give up; one that does not is left to itself
RESIDENT_SLACK_FACTOR = 1.1


class HostCallbacks(Protocol):
    """What a run can reach; the host hands it in."""

    async def call(self, call: ToolCall) -> Any:
        """The tool's result; a ToolError is given to the guest, any other GloveportError ends the run."""
        ...

    def call_sync(self, name: str, args: list[Any]) -> Any:
        """The answer to a synchronous look-up."""
        ...

    def report_defect(self, error: Exception) -> ToolError:
        """What is told of a call or a run that failed by a defect of the host."""
        ...

    def log(self, line: LogLine) -> None:
        """Takes a line of output."""
        ...

    def emit(self, value: Any) -> None:
        """Takes a value for the user."""
        ...


class Recorder(Protocol):
    """Keeps what passes between host and guest, in its order."""

    def event(self, payload: bytes) -> None:
        """Takes an event before it is sent to the guest."""
        ...

    def frame(self, payload: bytes) -> None:
        """Takes a frame that the guest sent."""
        ...


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a run is given besides its program. `now` is in microseconds since the epoch."""

    sources: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    input: Any = None
    has_input: bool = False
    seed: bytes = b""
    now: int = 0


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: a `value`, or an `error` as the guest or the host described it."""

    value: Any = None
    error: Mapping[str, Any] | None = None
    reported_by_guest: bool = (
        False  # the guest itself described the error, so that nothing in it can be taken for the host's word
    )
    pending: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    memory_peak_mb: float = 0.0


class RunAttempt:
    """Drives one worker through one program. `run` gives the ending; it never raises for what the guest did."""

    def __init__(self, worker: Worker, port: HostCallbacks, limits: Limits, recorder: Recorder | None = None) -> None:
        self._worker = worker
        self._port = port
        self._recorder = recorder
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._reader = wire.FrameReader(limits.max_frame_bytes, MAX_TOTAL_BYTES)
        self._ended: asyncio.Future[_End] = self._loop.create_future()
        self._starter = EagerTaskStarter(self._loop)
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._last_id = 0
        self._in_flight = 0
        self._timers = 0
        self._sync_calls = 0
        self._log_left = limits.max_log_bytes
        self._log_dropped = 0
        self._emit_left = limits.max_result_bytes
        self._timer: asyncio.TimerHandle | None = None
        self._watchdogs: list[asyncio.TimerHandle] = []
        self._frames: deque[bytes] = deque()
        self._queued_bytes: int | None = None  # None while frames are handled as they arrive
        self._outgoing_bytes = 0
        self._outgoing: list[bytes] = []
        self._receiving = False
        self._epoch = 0
        self._began = 0

    async def run(self, program: Program, setup: RunSetup) -> AttemptResult:
        """Run the program to its end. Cancelling this ends the guest."""
        self._epoch, self._began = setup.now or time.time_ns() // 1000, time.monotonic_ns()
        try:
            self._worker.limit(memory_mb=self._limits.memory_mb, cpu_seconds=self._limits.cpu_seconds)
            self._event(self._start(program, setup))
            self._flush()  # at once: what follows is done while the guest works
            self._start_watchdogs()
            self._worker.listen(self._receive)
            end = await self._ended
            usage = self._worker.run_cpu_seconds(), self._worker.peak_mb()
            if end.kind == "died":
                exit_, said = await self._worker.end()
                usage = exit_.cpu_seconds, exit_.max_rss_kb / 1024
                end = replace(end, content=exit_error(exit_, said, self._limits, self._worker.idle_mb))
            await self._finish_calls(end)
        except asyncio.CancelledError:
            await asyncio.shield(self._worker.end())  # whoever cancels a run finds it gone afterwards
            raise
        finally:
            self._stop_watchdogs()
            self._starter.close()
            self._worker.end()
            await self._abandon_calls()
        return self._result(end, *usage)

    # The stream of events, out to the guest.

    def _now(self) -> int:
        return self._epoch + (time.monotonic_ns() - self._began) // 1000

    def _start(self, program: Program, setup: RunSetup) -> bytes:
        limits = self._limits
        fields = {
            "code": program.code if program.erased is None else program.erased,
            "dialect": program.dialect if program.erased is None else "javascript",
            "typed": None if program.erased is None else program.code,
            "entry": program.entry,
            "tail": program.tail,
            "seed": base64.b64encode(setup.seed or os.urandom(32)).decode("ascii"),
            "sources": list(setup.sources),
            "has_input": setup.has_input,
            "memory_mb": limits.memory_mb,
            "max_frame_bytes": limits.max_frame_bytes,
            "max_log_bytes": limits.max_log_bytes,
        }
        rest = b',"env":' + encode(dict(setup.env), "env")
        if setup.has_input:
            rest += b',"input":' + encode(setup.input, "input")
        return b'["start",%d,' % self._epoch + orjson.dumps(fields)[:-1] + rest + b"}]"

    def _event(self, payload: bytes) -> None:
        """The one way for anything to reach the guest; what is ready in one turn of the loop goes in one write."""
        if self._recorder is not None:
            self._recorder.event(payload)
        if not self._outgoing and not self._receiving:
            self._loop.call_soon(self._flush)
        frame = wire.pack(payload)
        self._outgoing.append(frame)
        self._outgoing_bytes += len(frame)

    def _flush(self) -> None:
        if self._outgoing:
            data = self._outgoing[0] if len(self._outgoing) == 1 else b"".join(self._outgoing)
            self._outgoing, self._outgoing_bytes = [], 0
            if self._worker.send(data) > MAX_UNSENT_BYTES:
                message = f"more than {MAX_UNSENT_BYTES:,} bytes of replies wait for the program to take them"
                self._end("error", {"code": "frame-too-large", "message": message})

    def _reply(self, call_id: int, value: Any, name: str) -> None:
        try:
            payload = encode(value, "result")
        except ValueCrossingError as error:
            self._reply_error(call_id, ToolError(f"tools.{name}: {error.message}", code=error.code, tool=name))
            return
        if len(payload) > self._limits.max_frame_bytes:
            size = f"{len(payload):,} bytes, over the limit of {self._limits.max_frame_bytes:,}"
            self._reply_error(
                call_id, ToolError(f"the result of tools.{name} has {size}", code="frame-too-large", tool=name)
            )
            return
        self._event(b'["reply",%d,%d,true,%b]' % (self._now(), call_id, payload))

    def _reply_error(self, call_id: int, error: ToolError) -> None:
        fields = {"code": error.code, "message": error.message, "tool": error.tool, "hint": error.hint}
        told: dict[str, Any] = {name: _sendable(text) for name, text in fields.items() if text}
        told["retryable"] = error.retryable
        if error.status is not None:
            told["status"] = error.status
        payload = encode(told)
        with contextlib.suppress(ValueCrossingError):
            data = encode(error.data) if error.data else b""
            if 0 < len(data) <= MAX_ERROR_DATA_BYTES:
                payload = payload[:-1] + b',"data":' + data + b"}"
        self._event(b'["reply",%d,%d,false,%b]' % (self._now(), call_id, payload))

    # What the guest says.

    def _receive(self, data: bytes) -> None:
        if self._ended.done():
            return
        if not data:
            self._end("died", {})
            return
        self._process(data)

    def _process(self, data: bytes = b"") -> None:
        self._receiving = True
        try:
            frames = self._reader.feed(data) if data else []
            if self._queued_bytes is not None:
                self._queue(frames, len(data))
            elif len(frames) == 1 and not self._frames:
                self._handle(frames[0])
            else:
                self._frames.extend(frames)
                self._handle_queued()
        except GloveportError as error:
            self._end("error", {"code": error.code, "message": error.message})
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of ours ends the run, not the host
            told = self._port.report_defect(error)
            self._end("error", {"code": told.code, "message": told.message})
        finally:
            self._receiving = False
            self._flush()

    def _handle_queued(self) -> None:
        """Handle what has come, but not for long, and not while the guest leaves replies lying: then it has to wait."""
        until = self._loop.time() + MAX_SLICE_SECONDS
        frames = self._frames
        while frames and not self._ended.done():
            self._handle(frames.popleft())
            if frames and (self._loop.time() > until or self._outgoing_bytes > HIGH_WATER_BYTES):
                self._worker.pause()
                self._loop.call_soon(self._resume)
                return

    def _resume(self) -> None:
        if self._ended.done():
            return
        backed_up = self._worker.unsent > HIGH_WATER_BYTES
        self._queued_bytes = 0 if backed_up else None
        self._worker.resume()
        if backed_up:
            self._worker.when_sent(self._resume)
        else:
            self._process()

    def _queue(self, frames: list[bytes], size: int) -> None:
        """Keep what the guest says while it leaves replies lying: it reads none before it has written all."""
        self._frames.extend(frames)
        assert self._queued_bytes is not None
        self._queued_bytes += size
        if self._queued_bytes > MAX_IN_FLIGHT_BYTES:
            self._worker.pause()

    def _handle(self, frame: bytes) -> None:
        if self._recorder is not None:
            self._recorder.frame(frame)
        message = wire.parse(frame)
        if b'"$' in frame:
            message = [from_wire(part) for part in message]
        # Calls come first and without `match`, which takes as long as the rest of this.
        if message[0] == "call" and len(message) == 4:
            self._call(message[1], message[2], message[3], len(frame))
            return
        match message:
            case ["call_sync", int(call_id), str(name), list(args)]:
                self._call_sync(call_id, name, args)
            case ["timer", None]:
                self._set_timer(None)
            case ["timer", int() | float() as at] if -MAX_TIMER_MICROSECONDS < at < MAX_TIMER_MICROSECONDS:
                self._set_timer(at)
            case ["log", str(level), str(text)] if level in LOG_LEVELS:
                self._log(level, text)
            case ["emit", value]:
                self._emit(value, len(frame))
            case ["done", "value", value, dict(notes)]:
                self._done(value, notes, len(frame))
            case ["done", "error", dict(error), dict(notes)]:
                self._done_error(error, notes, len(frame))
            case _:
                raise WireError(f"a message of kind {message[0][:40]!r} is malformed")

    def _call(self, call_id: Any, name: Any, args: Any, size: int) -> None:
        if type(call_id) is not int or type(name) is not str or type(args) is not list or call_id <= self._last_id:
            raise WireError("a call is malformed, or its id was used before")
        if self._in_flight + size > MAX_IN_FLIGHT_BYTES:
            raise WireError(f"the calls under way hold more than {MAX_IN_FLIGHT_BYTES:,} bytes", code="frame-too-large")
        self._last_id = call_id
        task = self._starter.start(self._serve(ToolCall(call_id, name, args, size)))
        if task is not None:
            self._calls[call_id] = task
            task.add_done_callback(lambda _: self._calls.pop(call_id, None))

    async def _serve(self, call: ToolCall) -> None:
        self._in_flight += call.size
        try:
            self._reply(call.id, await self._port.call(call), call.name)
        except ToolError as error:
            self._reply_error(call.id, error)
        except GloveportError as error:
            self._end("error", {"code": error.code, "message": error.message, "hint": error.hint})
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of ours ends the call, not the host
            self._reply_error(call.id, self._port.report_defect(error))
        finally:
            self._in_flight -= call.size

    def _call_sync(self, call_id: int, name: str, args: list[Any]) -> None:
        if call_id <= self._last_id:
            raise WireError("a call's id was used before")
        self._last_id = call_id
        self._sync_calls += 1
        if self._sync_calls > MAX_SYNC_CALLS:
            raise WireError(f"the program made more than {MAX_SYNC_CALLS:,} look-ups", code="call-limit")
        try:
            value = self._port.call_sync(name, args)
        except ToolError as error:
            self._reply_error(call_id, error)
        else:
            self._reply(call_id, value, name)

    def _set_timer(self, at: float | None) -> None:
        self._timers += 1
        if self._timers > MAX_TIMERS:
            raise WireError(f"the program asked for more than {MAX_TIMERS:,} timers", code="call-limit")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            delay = min(max(0.0, (at - self._now()) / 1e6), 10 * 365 * 86400)
            if not delay:
                self._fire(at)
            else:
                self._timer = self._loop.call_later(delay, self._fire, at)

    def _fire(self, at: float) -> None:
        self._event(b'["timer",%d]' % max(self._now(), -int(-at // 1)))

    def _log(self, level: str, text: str) -> None:
        data = text.encode()
        room = self._log_left - LOG_LINE_OVERHEAD_BYTES
        if room < 0 or (data and not room):
            self._log_dropped += len(data)
            return
        self._log_left -= LOG_LINE_OVERHEAD_BYTES + min(len(data), room)
        if len(data) > room:
            self._log_dropped += len(data) - room
            text = data[:room].decode("utf-8", "ignore")
        self._port.log(LogLine(level, text))

    def _emit(self, value: Any, size: int) -> None:
        self._emit_left -= size + EMIT_OVERHEAD_BYTES
        if self._emit_left < 0:
            limit = self._limits.max_result_bytes
            raise WireError(f"the emitted values are larger than {limit:,} bytes together", code="result-too-large")
        self._port.emit(value)

    def _done(self, value: Any, notes: dict[str, Any], size: int) -> None:
        if size > self._limits.max_result_bytes:
            limit = self._limits.max_result_bytes
            message = f"the result has {size:,} bytes, over the limit of {limit:,}"
            self._end("error", {"code": "result-too-large", "message": message}, notes)
        else:
            self._end("value", value, notes)

    def _done_error(self, error: dict[str, Any], notes: dict[str, Any], size: int) -> None:
        if size > self._limits.max_result_bytes:
            error = {"type": error.get("type"), "message": f"an error of {size:,} bytes, which is too large to show"}
        self._end("error", error, notes)

    # The end.

    def _end(self, kind: str, content: Any, notes: dict[str, Any] | None = None) -> None:
        if not self._ended.done():
            self._ended.set_result(_End(kind, content, notes))

    def _start_watchdogs(self) -> None:
        self._watchdogs = [
            self._loop.call_later(self._limits.wall_seconds, self._out_of_time),
            self._loop.call_later(self._limits.cpu_seconds, self._check_cpu),
            self._loop.call_later(MEMORY_CHECK_SECONDS, self._check_memory),
        ]

    def _stop_watchdogs(self) -> None:
        for watch in [*self._watchdogs, *([self._timer] if self._timer else [])]:
            watch.cancel()

    def _out_of_time(self) -> None:
        message = f"the run took longer than {self._limits.wall_seconds:g} s"
        self._end("error", {"code": "time-limit", "message": message})

    def _check_cpu(self) -> None:
        left = self._limits.cpu_seconds - self._worker.run_cpu_seconds()
        if left <= 0:
            message = f"the program computed longer than {self._limits.cpu_seconds:g} s"
            self._end("error", {"code": "cpu-limit", "message": message})
        else:
            self._watchdogs[1] = self._loop.call_later(max(left, 0.005), self._check_cpu)

    def _check_memory(self) -> None:
        """What RLIMIT_DATA does not count (shared and read-only pages, page tables) is in what the process holds.

        RLIMIT_NPROC bounds threads closely only where a guest has a user namespace of its own.
        """
        if self._worker.resident_mb() > self._worker.idle_mb + self._limits.memory_mb * RESIDENT_SLACK_FACTOR:
            self._end("error", memory_error(self._limits))
        elif self._worker.threads() > MAX_THREADS:
            message = f"the engine had more than {MAX_THREADS} threads, as only one that was taken over has"
            self._end("error", {"code": "sandbox-crashed", "message": message})
        else:
            self._watchdogs[2] = self._loop.call_later(MEMORY_CHECK_SECONDS, self._check_memory)

    async def _finish_calls(self, end: _End) -> None:
        """Calls that a program had made before it ended by itself are finished, within the time that it had."""
        if end.notes is not None and self._calls:
            self._worker.end()
            left = self._limits.wall_seconds - (time.monotonic_ns() - self._began) / 1e9
            await asyncio.wait(list(self._calls.values()), timeout=max(left, 0))

    async def _abandon_calls(self) -> None:
        running = list(self._calls.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CANCEL_GRACE_SECONDS)

    def _result(self, end: _End, cpu_seconds: float, memory_peak_mb: float) -> AttemptResult:
        notes = GuestNotes.from_guest(end.notes or {})
        dropped = self._log_dropped + notes.dropped
        warnings = [f"{dropped:,} bytes of output were left out (max_log_bytes)"] if dropped else []
        return AttemptResult(
            value=end.content if end.kind == "value" else None,
            error=None if end.kind == "value" else end.content,
            reported_by_guest=end.notes is not None,
            pending=notes.pending,
            warnings=(*warnings, *(f"unhandled rejection: {text}" for text in notes.unhandled)),
            cpu_seconds=cpu_seconds,
            memory_peak_mb=memory_peak_mb,
        )


@dataclass(frozen=True, slots=True)
class _End:
    """What ended the attempt: kind `value`, `error` or `died`; `notes` only when the guest said done itself."""

    kind: str
    content: Any
    notes: Mapping[str, Any] | None


def _sendable(text: str) -> str:
    """Text that can be sent: what Python's file names hold of undecodable bytes becomes `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
