"""The driver of one program in a Monty worker: it takes events of the host, and gives frames and requests.

    host ── start, reply, timer ──► Driver ── feed_start, resume ──► worker
    host ◄── call, timer, log, emit, done ── Driver ◄── Called, Waiting, Completed … ──┘

The worker runs until it needs an answer. The driver answers at once what it can (a future for a call, a reading of the
clock). When all of the program waits, the guest is quiet and takes one event. So a run is a function of its events, as in
the other engines. The driver never trusts the worker, and does no I/O.
"""

from __future__ import annotations

import base64
import builtins
import heapq
import keyword
import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import orjson

from gloveport.errors import ToolError, ValueCrossingError, WireError
from gloveport.sandbox.engines.monty import messages
from gloveport.sandbox.engines.monty.arguments import encode_arguments, too_large
from gloveport.sandbox.engines.monty.clock import MICROS, GuestClock
from gloveport.sandbox.engines.monty.messages import (
    Answer,
    Asked,
    Called,
    Completed,
    Failed,
    GaveUp,
    Message,
    Named,
    Oversized,
    Printed,
    Promised,
    Raised,
    Refused,
    Returned,
    Waiting,
)
from gloveport.sandbox.engines.monty.nodes import TooHeavyError, Writer
from gloveport.sandbox.engines.monty.output import Lines
from gloveport.sandbox.engines.monty.step_labels import StepLabels
from gloveport.sandbox.engines.monty.tool_errors import ToolErrors
from gloveport.sandbox.engines.monty.unsupported import no_builtin
from gloveport.values import encode, from_wire

PROGRAM_FILE = "<python-input-1>"
"""The worker's file name for the program, which is the second text it is fed, after the prelude."""

ENTRY = "_gloveport_main"
GETTER, LISTING, NAMES = "__getToolInterface", "__interfaces", "gloveport__names"
GLOBAL_NAMES = frozenset(
    {*dir(builtins), *keyword.kwlist, "tools", "codemode", "emit", "step", "state", "ToolError", GETTER, LISTING}
)
FUNCTIONS = frozenset({"emit", GETTER, "exit", "quit"})
MAX_SLEEP_SECONDS = 10 * 365 * 86400
POLLING_TURNS = 500  # after so many turns without an event the program is polling, so an event must be let in
MAX_TURNS = 1_000_000
MAX_OBJECTS = 10_000
MAX_PATH_CHARS = 400

INPUT_CALL = re.compile(r"\binput\s*\(")
NO_EXIT = "exit is not offered here: return from the program"
NO_INPUT = "input() is not offered here: nobody is at a terminal; the run can be given an `input` instead"
NEVER_SETTLES = "the program waits for something that can never happen"

Event = list[Any]


@lru_cache(64)
def _guest_globals(sources: tuple[str, ...]) -> tuple[list[bytes], list[str], list[tuple[str, int]]]:
    """Return the globals of a program as nodes with their paths: `tools`, and each source whose name hides nothing."""
    writer = Writer()
    places = {name: writer.add_object(number, {}) for number, name in enumerate(sources, 1)}
    tools = writer.add_object(len(sources) + 1, places)
    named = [("tools", tools), ("codemode", tools), *(pair for pair in places.items() if pair[0] not in GLOBAL_NAMES)]
    return writer.nodes, [*sources, ""], named


class Driver:
    """The state of one run. `send` takes requests for the worker; `emit_frame` takes frames for the host."""

    def __init__(self, send: Callable[[bytes], None], emit_frame: Callable[[bytes], None]) -> None:
        self._send = send
        self._emit_frame = emit_frame
        self._wait: Callable[[Event], None] | None = self._start  # None while the worker runs
        self._events: deque[bytes] = deque()
        self._taken = b""
        self._held: list[bytes] = []
        self.queued = 0
        """The bytes of the events that wait until the guest is quiet."""
        self._setup: dict[str, Any] = {}
        self._clock = GuestClock()
        self._lines = Lines()
        self._tool_errors = ToolErrors()
        self._paths: list[str] = []
        self._last_id = 0
        self._calls: dict[int, int] = {}  # our ids of pending calls → the worker's ids
        self._sleeps: list[tuple[int, int]] = []  # a heap of (due time, the worker's id of the call)
        self._asked: int | None = None
        self._labels = StepLabels()
        self._turns = self._all_turns = 0
        self._ended = False

    # Events.

    def take(self, payload: bytes) -> None:
        """Take an event of the host. It reaches the guest when the guest is quiet."""
        self._events.append(payload)
        self.queued += len(payload)
        self._pump()

    def _pump(self) -> None:
        while self._wait is not None and self._events and not self._ended:
            self._taken = self._events.popleft()
            self.queued -= len(self._taken)
            self._wait(orjson.loads(self._taken))

    def _start(self, event: Event) -> None:
        _, now, setup = event
        self._setup = setup
        self._clock.start(now, base64.b64decode(setup["seed"]), from_wire(setup["env"]))
        self._lines.left = setup["max_log_bytes"]
        nodes, paths, given = _guest_globals(tuple(setup["sources"]))
        self._paths += paths
        writer, inputs = Writer(nodes), [*given]
        if setup["has_input"]:
            inputs.append(("input", writer.add(from_wire(setup.get("input")))))
        code = setup["code"]
        if setup["entry"] == "function":
            code += f"\nawait _gloveport_settled({ENTRY}[{int(setup['has_input'])}]())\n"
        self._resume(messages.feed_start(code, inputs, writer.table()))

    def _resume(self, request: bytes) -> None:
        self._wait = None
        self._send(request)

    def _answer(self, call: int, answer: Answer, table: bytes = b"") -> None:
        self._resume(messages.resume_call(call, answer, table))

    # Messages of the worker.

    def hear(self, message: Message) -> None:
        """Take a message of the worker. Raise WireError when it breaks the protocol."""
        if self._ended or isinstance(message, GaveUp):  # it is about to exit, and its exit is reported
            return
        if isinstance(message, Printed):
            self._log(message)
            return
        if self._wait is not None:
            raise WireError("the worker spoke out of turn")
        self._all_turns += 1
        if self._all_turns > MAX_TURNS:
            text = f"the program made more than {MAX_TURNS:,} requests to its host"
            self._done_error({"type": "RuntimeError", "message": text})
            return
        match message:
            case Called():
                self._called(message)
            case Oversized():
                self._refused(message)
            case Asked():
                self._asked_for(message)
            case Named():
                self._named(message)
            case Waiting():
                self._quiet(message)
            case Completed():
                self._completed(message)
            case Raised():
                self._done_error(self._tool_errors.describe(message, PROGRAM_FILE))
            case _:
                raise WireError("the worker sent an answer that was not requested")
        self._pump()

    def _log(self, printed: Printed) -> None:
        for level, text in self._lines.take(printed):
            self._emit_frame(b'["log","%b",%b]' % (level.encode(), encode(text)))

    # Names and objects. Attribute reads collect a path, which is sent when it is called. The host looks up every name.

    def _object(self, writer: Writer, path: str) -> int:
        self._paths.append(path)
        return writer.add_object(len(self._paths), {})

    def _path(self, receiver: int, name: str = "") -> str:
        if not 0 < receiver <= len(self._paths):
            raise WireError("the worker named an object that it did not get")
        path = self._paths[receiver - 1]
        return f"{path}.{name}" if path and name else path or name

    def _named(self, named: Named) -> None:
        if named.receiver is None and named.name == LISTING:
            self._look_up("interfaces", [], lambda index, table: self._resume(messages.resume_name(index, table)))
            return
        if named.receiver is not None and named.name == NAMES:
            path = self._path(named.receiver)
            self._look_up("names", [path], lambda index, table: self._resume(messages.resume_name(index, table)))
            return
        writer, index = Writer(), None
        if named.receiver is not None:
            path = self._path(named.receiver, named.name)
            if not named.name.startswith("__") and len(path) <= MAX_PATH_CHARS and len(self._paths) < MAX_OBJECTS:
                index = self._object(writer, path)
        elif named.name == "input" and not INPUT_CALL.search(self._setup["code"]):
            pass  # a run without an input has no such name, unless the program calls Python's function
        elif named.name in FUNCTIONS or no_builtin(named.name):
            index = writer.add_function(named.name)  # a function that Monty lacks fails when it is called
        self._resume(messages.resume_name(index, writer.table()))

    # Calls.

    def _called(self, called: Called) -> None:
        try:
            if called.receiver is None:
                self._call_function(called)
            else:
                self._call_tool(called)
        except ValueCrossingError as error:
            self._fail(called, {"message": error.message, "code": "bad-value"})
        except TooHeavyError as error:
            self._fail(called, self._too_large(called.name, error.size))

    def _fail(self, called: Called, fields: Mapping[str, Any]) -> None:
        self._answer(called.call, self._tool_errors.failed(fields))

    def _refused(self, oversized: Oversized) -> None:
        called = oversized.call
        name = called.name if called.receiver is None else f"tools.{self._path(called.receiver, called.name)}"
        self._fail(called, self._too_large(name, oversized.size))

    def _too_large(self, name: str, size: int) -> dict[str, Any]:
        return too_large(name, size, self._setup["max_frame_bytes"])

    def _call_tool(self, called: Called) -> None:
        assert called.receiver is not None
        name = self._path(called.receiver, called.name)
        if called.name == "__call__":
            name = name.rpartition(".")[0]
        if not name:
            message = "`tools` is not a function: call tools.<source>.<name>(…)"
            self._fail(called, {"message": message, "code": "unknown-tool"})
        elif called.args and called.options:
            self._ask_host("parameters", [name], partial(self._make_named_call, called, name))
        else:
            self._make_call(called, name)

    def _make_named_call(self, called: Called, name: str, parameters: Event) -> None:
        if parameters[3]:
            self._make_call(called, name, from_wire(parameters[4]))
        else:
            self._fail(called, from_wire(parameters[4]))

    def _make_call(self, called: Called, name: str, parameters: Sequence[str] = ()) -> None:
        values = [self._value(called, index) for index in called.args]
        options = {self._value(called, key): self._value(called, index) for key, index in called.options}
        limit = self._setup["max_frame_bytes"] - len(name) - 64
        try:
            args = encode_arguments(name, values, options, parameters, limit)
        except ToolError as error:
            self._fail(called, {"message": error.message, "code": error.code, "tool": name})
            return
        except TooHeavyError as error:
            self._fail(called, self._too_large(f"tools.{name}", error.size))
            return
        self._last_id += 1
        self._calls[self._last_id] = called.call
        label = self._labels.wait(called.call)
        self._emit_frame(b'["call",%d,%b,%b%b]' % (self._last_id, encode(name), args, label))
        if called.awaited:
            self._wait = partial(self._until_reply, self._last_id, self._settle)
        else:
            self._answer(called.call, Promised())

    def _value(self, called: Called, index: int) -> Any:
        return called.table.take(index, self._setup["max_frame_bytes"])

    def _call_function(self, called: Called) -> None:
        writer = Writer()
        first = self._value(called, called.args[0]) if called.args else None
        match called.name:
            case "emit":
                self._emit_frame(b'["emit",%b]' % encode(first, "emit"))
                self._answer(called.call, Returned(writer.add(None)), writer.table())
            case "_gloveport_fields":
                self._answer(
                    called.call,
                    Returned(writer.add(self._tool_errors.find(first if isinstance(first, str) else ""))),
                    writer.table(),
                )
            case "_gloveport_keep":
                encode(first, "error")  # raises for a value that can't cross
                kept = self._tool_errors.keep(first if isinstance(first, dict) else {})
                self._answer(called.call, Returned(writer.add(kept)), writer.table())
            case "_gloveport_cause":
                values = [self._value(called, index) for index in called.args]
                if [*map(type, values)] == [str] * 4:
                    self._tool_errors.add_cause(*values)
                self._answer(called.call, Returned(writer.add(None)), writer.table())
            case "_gloveport_label":
                self._answer(called.call, Returned(writer.add(self._labels.current)), writer.table())
            case "_gloveport_relabel":
                self._labels.change(first)
                self._answer(called.call, Returned(writer.add(None)), writer.table())
            case "__getToolInterface":
                self._look_up("interface", [first], partial(self._return, called.call))
            case "exit" | "quit":
                self._answer(called.call, Failed("SystemExit", NO_EXIT))
            case "input":
                self._answer(called.call, Failed("RuntimeError", NO_INPUT))
            case _:
                lacking = no_builtin(called.name)
                self._answer(called.call, Failed("NotImplementedError", lacking) if lacking else Refused(called.name))

    def _return(self, call: int, index: int | None, table: bytes) -> None:
        self._answer(call, Returned(index) if index is not None else Failed("KeyError", "there is no such tool"), table)

    def _look_up(self, name: str, args: list[Any], then: Callable[[int | None, bytes], None]) -> None:
        self._ask_host(name, args, partial(self._looked_up, then))

    def _ask_host(self, name: str, args: list[Any], then: Callable[[Event], None]) -> None:
        """Send the host a call that the whole guest waits for."""
        self._last_id += 1
        self._emit_frame(b'["call_sync",%d,%b,%b]' % (self._last_id, encode(name), encode(args)))
        self._wait = partial(self._until_reply, self._last_id, then)

    def _looked_up(self, then: Callable[[int | None, bytes], None], event: Event) -> None:
        writer = Writer()
        index = writer.add(from_wire(event[4])) if event[3] else None
        then(index, writer.table())

    # Waiting. While the guest waits for one event, the others are queued until it is quiet.

    def _until_reply(self, call: int, then: Callable[[Event], None], event: Event) -> None:
        if event[0] == "reply" and event[2] == call:
            self._happened(event)
            self._release()
            then(event)
        else:
            self._hold()

    def _until_time(self, at: int, call: int, event: Event) -> None:
        if event[0] == "timer" and event[1] >= at:
            self._asked = None
            self._happened(event)
            self._release()
            writer = Writer()
            self._answer(call, Returned(writer.add(None)), writer.table())
        else:
            self._hold()

    def _hold(self) -> None:
        self._held.append(self._taken)
        self.queued += len(self._taken)

    def _release(self) -> None:
        self._events.extendleft(reversed(self._held))
        self._held.clear()

    def _happened(self, event: Event) -> None:
        self._turns = 0
        self._clock.advance(event[1])

    def _quiet(self, waiting: Waiting) -> None:
        due = self._sleeps[0][0] if self._sleeps else None
        if due is not None and due <= self._clock.now and self._turns < POLLING_TURNS:
            self._turns += 1
            self._wake()
            return
        if due is None and not self._calls:
            self._done_error(self._never_settles(waiting))
            return
        self._ask(due)
        self._wait = partial(self._on_event, waiting)

    def _on_event(self, waiting: Waiting, event: Event) -> None:
        self._happened(event)
        if event[0] == "timer":
            self._asked = None
            self._quiet(waiting)
        elif self._calls.get(event[2]) in waiting.calls:
            self._settle(event)
        else:  # nothing waits for it any more
            self._calls.pop(event[2], None)
            self._quiet(waiting)

    def _settle(self, event: Event) -> None:
        """Pass the reply to a call on to the program."""
        call = self._calls.pop(event[2])
        self._labels.resume(call)
        writer = Writer()
        if event[3]:
            answer: Answer = Returned(writer.add(from_wire(event[4])))
        else:
            answer = self._tool_errors.settled(from_wire(event[4]))
        self._resume(messages.resume_futures([(call, answer)], writer.table()))

    # Sleeping.

    def _asked_for(self, asked: Asked) -> None:
        if asked.what not in (messages.SLEEP, messages.ASYNC_SLEEP):
            answer, table = self._clock.answer(asked)
            self._answer(asked.call, answer, table)
            return
        seconds = messages.seconds_of(asked)
        seconds = 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), MAX_SLEEP_SECONDS)
        at = self._clock.now + round(seconds * MICROS)
        if asked.what == messages.ASYNC_SLEEP:
            heapq.heappush(self._sleeps, (at, asked.call))
            self._labels.wait(asked.call)
            self._answer(asked.call, Promised())
        elif at == self._clock.now:
            writer = Writer()
            self._answer(asked.call, Returned(writer.add(None)), writer.table())
        else:
            self._ask(at)
            self._wait = partial(self._until_time, at, asked.call)

    def _ask(self, at: int | None) -> None:
        if at != self._asked:
            self._asked = at
            self._emit_frame(b'["timer",%b]' % (b"null" if at is None else b"%d" % at))

    def _wake(self) -> None:
        """End the sleeps that are due, those of one step at a time."""
        writer = Writer()
        nothing = Returned(writer.add(None))
        ended: list[tuple[int, Answer]] = []
        label = self._labels.of(self._sleeps[0][1])
        while self._sleeps and self._sleeps[0][0] <= self._clock.now and self._labels.of(self._sleeps[0][1]) == label:
            ended.append((heapq.heappop(self._sleeps)[1], nothing))
            self._labels.resume(ended[-1][0])
        self._resume(messages.resume_futures(ended, writer.table()))

    # The end.

    @property
    def max_message(self) -> int:
        """The maximum bytes of a message of the worker."""
        return self._setup.get("max_frame_bytes", 64 * 1024)

    def break_off(self, error: WireError) -> None:
        """End the run, because the worker broke the protocol."""
        if self._ended:
            return
        if error.code == "bad-value":
            self._done_error({"type": "ValueError", "code": error.code, "message": error.message})
        else:
            self._ended = True
            self._emit_frame(b'["violation"]')  # the host ends the run for it

    def _completed(self, completed: Completed) -> None:
        limit = self._setup["max_frame_bytes"]
        try:
            value = encode(completed.table.take(completed.index, limit), "result")
        except ValueCrossingError as error:
            self._done_error({"type": "TypeError", "code": "bad-value", "message": error.message})
        except TooHeavyError as error:
            self.end_too_large(error.size)
        else:
            if len(value) > limit - 1024:
                self.end_too_large(len(value))
            else:
                self._done(b'"value",%b' % value)

    def end_too_large(self, size: int) -> None:
        """End the run, because its result is larger than a message may be."""
        if self._ended:
            return
        message = f"the result is too large: {size:,} bytes are over the limit of {self._setup['max_frame_bytes']:,}"
        self._done_error({"type": "ValueError", "code": "result-too-large", "message": f"{message} for one message"})

    def _never_settles(self, waiting: Waiting) -> dict[str, Any]:
        error = {"type": "RuntimeError", "code": "never-settles", "message": NEVER_SETTLES}
        if waiting.file != PROGRAM_FILE:
            return error
        before = self._setup["code"].encode()[: waiting.offset].decode(errors="ignore")
        return error | {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}

    def _done_error(self, error: Mapping[str, Any]) -> None:
        try:
            encoded = encode(dict(error), "error")
        except ValueCrossingError:
            encoded = encode({"type": error.get("type"), "message": error.get("message")})
        self._done(b'"error",%b' % encoded)

    def _done(self, result: bytes) -> None:
        self._ended = True
        for level, text in self._lines.end():
            self._emit_frame(b'["log","%b",%b]' % (level.encode(), encode(text)))
        notes = {"pending": list(self._calls), "unhandled": self._tool_errors.unseen(), "dropped": self._lines.dropped}
        self._emit_frame(b'["done",%b,%b]' % (result, encode(notes)))
