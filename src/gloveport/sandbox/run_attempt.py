"""Run one program in one worker, from the start event to the result.

Everything that the guest can observe passes through `RunAttempt._event`, in one order: that order defines the run. The
guest is hostile, and nothing that it sends is trusted: it can reach what its run may call, and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gloveport.errors import GloveportError, SandboxError, ToolError, ValueCrossingError, WireError
from gloveport.large_values import LARGE_BYTES, is_large, off_loop, off_loop_if, off_loop_soon
from gloveport.sandbox import wire
from gloveport.sandbox.eager import EagerTaskStarter
from gloveport.sandbox.exit_reason import GuestNotes
from gloveport.sandbox.history import RepeatedFrames, RunHistory
from gloveport.sandbox.host_callbacks import HostCallbacks, Recorder
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.start_event import RunSetup, start_event, without_script
from gloveport.sandbox.worker import END_DELAY_SECONDS
from gloveport.types import MIB, Divergence, Limits, LogLine, Program, ToolCall
from gloveport.values import encode, encode_large

MAX_SYNC_CALLS = 10_000
MAX_TIMER_MICROSECONDS = 2**62  # distance of a timer from the epoch
EMIT_OVERHEAD_BYTES = 64  # charged to the result budget for each emitted value, beside its size
LOG_LINE_OVERHEAD_BYTES = 16  # charged to the log budget for each line, beside its text
MAX_SLICE_SECONDS = 0.01  # for handling frames in one turn of the loop
HIGH_WATER_BYTES = 8 * MIB  # unread replies; above this, no more frames of the guest are handled
MAX_UNSENT_BYTES = 128 * MIB
MAX_IN_FLIGHT_BYTES = 64 * MIB
MAX_BATCH_BYTES = MIB  # events that are gathered for one write
FRAME_OVERHEAD_BYTES = 96  # charged for each queued frame, beside its size: a small one takes more memory than it has bytes
MAX_TIMERS = 1_000_000
MAX_TOTAL_BYTES = 512 * MIB
LOG_LEVELS = frozenset({"debug", "log", "info", "warn", "error"})
CANCEL_GRACE_SECONDS = 1.0  # for a cancelled call to end; after that, nothing waits for it


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended: a `value`, or an `error` as the guest or the host described it."""

    value: Any = None
    error: Mapping[str, Any] | None = None
    reported_by_guest: bool = False  # the guest wrote `error`: trust none of it
    pending: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    memory_peak_mb: float = 0.0
    state: Any = None  # what the guest reports that a session keeps


class RunAttempt:
    """Drives one worker through one program. `run` never raises for anything that the guest did."""

    def __init__(self, worker: RunWorker, host: HostCallbacks, limits: Limits, recorder: Recorder | None = None) -> None:
        self._worker = worker
        self._host = host
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
        self._frames: deque[bytes] = deque()
        self._queued_bytes: int | None = None  # None while frames are handled as they arrive
        self._outgoing_bytes = 0
        self._outgoing: list[bytes] = []
        self._receiving = False
        self._decoding: asyncio.Future[list[Any]] | None = None  # a large frame; meanwhile, all others wait
        self._encoding = 0  # large replies; meanwhile, no frames are handled: the program could make many more
        self._waits_for_encoding = False
        self._epoch = 0
        self._began = 0
        self._history: RunHistory | None = None
        self._repeated: RepeatedFrames | None = None  # while recorded frames are repeated

    async def run(self, program: Program, setup: RunSetup) -> AttemptResult:
        """Run the program and return its result. Cancelling this kills the guest."""
        self._epoch, self._began = setup.now or time.time_ns() // 1000, time.monotonic_ns()
        large = setup.has_input and is_large(setup.input)
        return await self._drive(lambda: off_loop_if(large, start_event, program, setup, self._limits, self._epoch))

    async def resume(self, history: RunHistory) -> AttemptResult:
        """Repeat the recorded part of a run, then go on with it. The error is `replay-diverged` if it does otherwise.

        What is repeated calls no tool and is not recorded again.
        """
        self._repeated = history.repeated
        self._history = history
        self._epoch, self._began = max(time.time_ns() // 1000, history.now + 1), time.monotonic_ns()

        async def events() -> bytes:
            await self._prepare(history)
            return history.sent

        return await self._drive(events)

    async def start_again(self, history: RunHistory) -> AttemptResult:
        """Run the program of a recorded run from its start, at the time at which it ran, with calls that are made now."""
        self._epoch, self._began = history.began, time.monotonic_ns()

        async def first() -> bytes:
            await self._prepare(history)
            return history.recording.events[0]

        return await self._drive(first)

    async def _prepare(self, history: RunHistory) -> None:
        """Prepare the process as that of the recorded run was."""
        if history.preparation is not None and not await self._worker.prepare(history.preparation):
            raise SandboxError("what the run imports can't be imported again as it was", code="replay-diverged")

    async def _drive(self, start: Callable[[], Awaitable[bytes]]) -> AttemptResult:
        try:
            first = await start()
            self._worker.limit(self._limits, lambda: self._receive(b""))
            if self._repeated is None:
                prepared = self._worker.prepared is not None
                self._send(
                    wire.pack(without_script(first) if prepared else first)
                )  # now, so that the rest happens while the guest works
                if self._recorder is not None:
                    self._recorder.event(first)
            else:
                self._worker.send(first)
            self._worker.listen(self._receive)
            if self._repeated is not None and self._repeated.are_complete:
                self._loop.call_soon(self._guard, self._go_on)
            end = await self._ended
            usage = self._worker.run_cpu_seconds(), self._worker.peak_mb()
            if end.kind == "died":
                exit_, stderr = await self._worker.end()
                usage = exit_.cpu_seconds, exit_.max_rss_kb / 1024
                end = replace(end, content=self._worker.death(exit_, stderr, self._limits))
            await self._finish_calls(end)
        except asyncio.CancelledError:
            await asyncio.shield(self._worker.end())  # the guest is dead when the cancellation completes
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._starter.close()
            self._worker.end(END_DELAY_SECONDS)
            if self._decoding is not None:
                self._decoding.cancel()
            await self._abandon_calls()
        return self._result(end, *usage)

    # ── events to the guest ──

    def _now(self) -> int:
        return self._epoch + (time.monotonic_ns() - self._began) // 1000

    def _event(self, payload: bytes) -> None:
        """Send an event: the only way to the guest. All events of one turn of the loop go out in one write."""
        if self._recorder is not None:
            self._recorder.event(payload)
        if not self._outgoing and not self._receiving:
            self._loop.call_soon(self._flush)
        frame = wire.pack(payload)
        self._outgoing.append(frame)
        self._outgoing_bytes += len(frame) + FRAME_OVERHEAD_BYTES

    def _flush(self) -> None:
        if self._outgoing:
            data = self._outgoing[0] if len(self._outgoing) == 1 else b"".join(self._outgoing)
            self._outgoing, self._outgoing_bytes = [], 0
            self._send(data)

    def _send(self, data: bytes) -> None:
        if self._worker.send(data) > MAX_UNSENT_BYTES:
            message = f"more than {MAX_UNSENT_BYTES:,} bytes of replies wait for the program to read them"
            self._end("error", {"code": "frame-too-large", "message": message})

    def _reply(self, call_id: int, payload: bytes, name: str) -> None:
        if len(payload) > self._limits.max_frame_bytes:
            size = f"{len(payload):,} bytes, over the limit of {self._limits.max_frame_bytes:,}"
            error = ToolError(f"the result of tools.{name} has {size}", code="frame-too-large", tool=name)
            self._reply_error(call_id, error)
            return
        self._event(b'["reply",%d,%d,true,%b]' % (self._now(), call_id, payload))

    def _reply_error(self, call_id: int, error: ToolError) -> None:
        self._event(wire.error_reply(self._now(), call_id, error))

    # ── frames from the guest ──

    def _receive(self, data: bytes) -> None:
        if self._ended.done():
            return
        if not data:
            if self._repeated is not None and not self._repeated.are_complete and not self._worker.lost:
                self._diverged(self._repeated.ended())
            else:
                self._end("died", {})
            return
        self._process(data)

    def _process(self, data: bytes = b"") -> None:
        self._guard(self._take, data)

    def _take(self, data: bytes) -> None:
        frames = self._reader.feed(data) if data else []
        if self._queued_bytes is not None:
            self._queue(frames, len(data))
        elif len(frames) == 1 and not self._frames and not self._encoding and len(frames[0]) <= LARGE_BYTES:
            self._handle(frames[0])
        else:
            self._frames.extend(frames)
            self._handle_queued()

    def _guard(self, handle: Callable[..., None], *args: Any) -> None:
        """Handle frames: end the run when one can't be handled, and send what they led to."""
        self._receiving = True
        try:
            handle(*args)
        except GloveportError as error:
            self._end("error", {"code": error.code, "message": error.message, "hint": error.hint})
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of ours ends the run, not the host
            defect = self._host.report_defect(error)
            self._end("error", {"code": defect.code, "message": defect.message})
        finally:
            self._receiving = False
            self._flush()

    def _handle_queued(self) -> None:
        """Handle queued frames for at most one slice, and pause while the guest leaves too many replies unread."""
        until = self._loop.time() + MAX_SLICE_SECONDS
        frames = self._frames
        while frames and not self._ended.done():
            if self._encoding:
                self._worker.pause()
                self._waits_for_encoding = True
                return
            frame = frames.popleft()
            if len(frame) > LARGE_BYTES and self._repeated is None:
                self._decode_large(frame)
                return
            self._handle(frame)
            if frames and (self._loop.time() > until or self._outgoing_bytes > MAX_BATCH_BYTES):
                self._worker.pause()
                self._loop.call_soon(self._resume)
                return

    def _decode_large(self, frame: bytes) -> None:
        """Decode a frame away from the loop. Until it is handled, the next frames wait: they keep their order."""
        self._record(frame)
        self._worker.pause()
        self._decoding = off_loop(wire.decode, frame)
        self._decoding.add_done_callback(partial(self._handle_decoded, len(frame)))

    def _handle_decoded(self, size: int, decoded: asyncio.Future[list[Any]]) -> None:
        self._decoding = None
        if not self._ended.done() and not decoded.cancelled():
            self._guard(lambda: self._dispatch(decoded.result(), size))
            self._resume()

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
        """Queue frames while the guest leaves replies unread: it reads none before it has written everything."""
        self._frames.extend(frames)
        assert self._queued_bytes is not None
        self._queued_bytes += size + len(frames) * FRAME_OVERHEAD_BYTES
        if self._queued_bytes > MAX_IN_FLIGHT_BYTES:
            self._worker.pause()

    def _handle(self, frame: bytes) -> None:
        if self._repeated is not None:
            self._repeat(frame)
            return
        self._record(frame)
        self._dispatch(wire.decode(frame), len(frame), None if self._recorder is None else frame)

    def _repeat(self, frame: bytes) -> None:
        """Compare a frame with the recorded one. After the last of these, go on with what the recording leaves open."""
        assert self._repeated is not None
        if (difference := self._repeated.take(frame)) is not None:
            self._diverged(difference)
        elif self._repeated.are_complete:
            self._go_on()

    def _go_on(self) -> None:
        assert self._history is not None
        history, self._repeated = self._history, None
        history.is_repeated = True
        self._last_id = max((past.call.id for past in history.calls), default=0)
        self._log_left -= sum(len(line.text.encode()) + LOG_LINE_OVERHEAD_BYTES for line in history.logs)
        if history.has_ended:  # and the host ended before it could record the outcome
            self._dispatch(wire.decode(history.recording.frames[-1]), len(history.recording.frames[-1]))
        for past in history.open_calls:
            answer = self._host.call_sync(past.call.name, past.call.args) if past.is_sync else self._host.call_again(past)
            self._begin(past.call.id, self._serve(past.call, answer))
        if history.timer is not None:
            self._set_timer(history.timer)

    def _diverged(self, difference: Divergence) -> None:
        message = f"the run can't be repeated as it was: {difference}"
        self._end("error", {"code": "replay-diverged", "message": message})

    def _record(self, frame: bytes) -> None:
        if self._recorder is not None:
            self._recorder.frame(frame)

    def _dispatch(self, message: list[Any], size: int, recorded: bytes | None = None) -> None:
        # Calls come first and without `match`, which would take as long as the rest of this method.
        if message[0] == "call" and len(message) in (4, 5):
            self._call(message, size, recorded)
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
                self._emit(value, size)
            case ["done", "value", value, dict(notes)]:
                self._done(value, notes, size)
            case ["done", "error", dict(error), dict(notes)]:
                self._done_error(error, notes, size)
            case _:
                raise WireError(f"a message of kind {message[0][:40]!r} is malformed")

    def _call(self, message: list[Any], size: int, recorded: bytes | None) -> None:
        call_id, name, args, step = *message[1:4], wire.label_of(message)
        if type(call_id) is not int or type(name) is not str or type(args) is not list or call_id <= self._last_id:
            raise WireError("a call is malformed, or its id was used before")
        if self._in_flight + size > MAX_IN_FLIGHT_BYTES:
            raise WireError(f"the calls in flight hold more than {MAX_IN_FLIGHT_BYTES:,} bytes", code="frame-too-large")
        self._last_id = call_id
        call = ToolCall(call_id, name, args, size, step, recorded)
        self._begin(call_id, self._serve(call, self._host.call(call)))

    def _begin(self, call_id: int, service: Coroutine[Any, Any, None]) -> None:
        task = self._starter.start(service)
        if task is not None:
            self._calls[call_id] = task
            task.add_done_callback(lambda _: self._calls.pop(call_id, None))

    async def _serve(self, call: ToolCall, answer: Coroutine[Any, Any, Any]) -> None:
        self._in_flight += call.size
        try:
            value = await answer
            payload = await self._encode_large(value) if is_large(value) else encode(value, "result")
            self._reply(call.id, payload, call.name)
        except ValueCrossingError as error:
            self._reply_error(call.id, wire.crossing_error(error, call.name))
        except ToolError as error:
            self._reply_error(call.id, error)
        except GloveportError as error:
            self._end("error", {"code": error.code, "message": error.message, "hint": error.hint})
        except Exception as error:  # noqa: BLE001 - the outer edge: a defect of ours ends the call, not the host
            self._reply_error(call.id, self._host.report_defect(error))
        finally:
            self._in_flight -= call.size

    async def _encode_large(self, value: Any) -> bytes:
        self._encoding += 1
        try:
            return await off_loop_soon(encode_large, value, "result")
        finally:
            self._encoding -= 1
            if not self._encoding and self._waits_for_encoding:
                self._waits_for_encoding = False
                self._loop.call_soon(self._resume)

    def _call_sync(self, call_id: int, name: str, args: list[Any]) -> None:
        if call_id <= self._last_id:
            raise WireError("a call's id was used before")
        self._last_id = call_id
        self._sync_calls += 1
        if self._sync_calls > MAX_SYNC_CALLS:
            raise WireError(f"the program made more than {MAX_SYNC_CALLS:,} look-ups", code="call-limit")
        self._begin(call_id, self._serve(ToolCall(call_id, name, args), self._host.call_sync(name, args)))

    def _set_timer(self, at: float | None) -> None:
        self._timers += 1
        if self._timers > MAX_TIMERS:
            raise WireError(f"the program set more than {MAX_TIMERS:,} timers", code="call-limit")
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
        self._host.log(LogLine(level, text))

    def _emit(self, value: Any, size: int) -> None:
        self._emit_left -= size + EMIT_OVERHEAD_BYTES
        if self._emit_left < 0:
            limit = self._limits.max_result_bytes
            raise WireError(f"the emitted values are larger than {limit:,} bytes together", code="result-too-large")
        self._host.emit(value)

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

    # ── the end ──

    def _end(self, kind: str, content: Any, notes: dict[str, Any] | None = None) -> None:
        if not self._ended.done():
            self._ended.set_result(_End(kind, content, notes))

    async def _finish_calls(self, end: _End) -> None:
        """Wait for the calls that a program made before it ended by itself, within its time limit."""
        if end.notes is not None and self._calls:
            self._worker.end()
            self._host.stop_asking()
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
            state=(end.notes or {}).get("state"),
        )


@dataclass(frozen=True, slots=True)
class _End:
    """What ended the attempt: kind `value`, `error` or `died`. `notes` is set only when the guest sent `done`."""

    kind: str
    content: Any
    notes: Mapping[str, Any] | None
