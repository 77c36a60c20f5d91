"""One program in one Monty worker: events of the host in, frames for the host out, requests to the worker in between.

    host ── start, reply, timer ──► Driver ── feed_start, resume ──► worker
    host ◄── call, timer, log, emit, done ── Driver ◄── Called, Waiting, Completed … ──┘

The worker runs until it needs an answer. What needs none of the host's (a promise for a call, a reading of the clock) is
answered at once; where everything of the program waits, the guest is quiet and takes one event. So what it sees is a
function of the events in their order, as in the other engines. It never trusts the worker, and does no I/O.
"""

from __future__ import annotations

import base64
import builtins
import heapq
import keyword
import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import orjson

from gloveport.errors import ValueCrossingError, WireError
from gloveport.sandbox.engines.monty import messages
from gloveport.sandbox.engines.monty.failures import Failures
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
from gloveport.sandbox.engines.monty.unsupported import no_builtin
from gloveport.sandbox.engines.monty.world import MICROS, World
from gloveport.values import encode, from_wire

PROGRAM_FILE = "<python-input-1>"
"""What the worker calls the program: the second text that it is fed, after the prelude."""

ENTRY = "_gloveport_main"
GETTER, LISTING, NAMES = "__getToolInterface", "__interfaces", "gloveport__names"
TAKEN = frozenset(
    {*dir(builtins), *keyword.kwlist, "tools", "codemode", "emit", "step", "state", "ToolError", GETTER, LISTING}
)
FUNCTIONS = frozenset({"emit", GETTER, "exit", "quit"})
LONGEST_SLEEP = 10 * 365 * 86400
MANY_TURNS = 500  # without an event: the program polls, and what it polls for must be let in
MOST_TURNS = 1_000_000
MOST_OBJECTS = 10_000
LONGEST_PATH = 400

ASKS = re.compile(r"\binput\s*\(")
NO_EXIT = "exit is not offered here: return from the program"
NO_INPUT = "input() is not offered here: nobody is at a terminal; the run can be given an `input` instead"
NEVER_SETTLES = "the program waits for something that can never happen"

Event = list[Any]


@lru_cache(64)
def _givens(sources: tuple[str, ...]) -> tuple[list[bytes], list[str], list[tuple[str, int]]]:
    """The objects that a program finds by name, `tools` and each source that hides nothing: as nodes, with their paths."""
    writer = Writer()
    places = {name: writer.add_object(number, {}) for number, name in enumerate(sources, 1)}
    tools = writer.add_object(len(sources) + 1, places)
    named = [("tools", tools), ("codemode", tools), *(pair for pair in places.items() if pair[0] not in TAKEN)]
    return writer.nodes, [*sources, ""], named


class Driver:
    """The state of one run. `send` takes requests for the worker, `say` takes frames for the host."""

    def __init__(self, send: Callable[[bytes], None], say: Callable[[bytes], None]) -> None:
        self._send = send
        self._say = say
        self._wait: Callable[[Event], None] | None = self._start  # None while the worker runs
        self._events: deque[bytes] = deque()
        self._taken = b""
        self._held: list[bytes] = []
        self.queued = 0
        """Bytes of events that wait for the guest to be quiet."""
        self._setup: dict[str, Any] = {}
        self._world = World()
        self._lines = Lines()
        self._failures = Failures()
        self._paths: list[str] = []
        self._last_id = 0
        self._calls: dict[int, int] = {}  # the ids of calls under way → the worker's own
        self._sleeps: list[tuple[int, int]] = []  # (due, the worker's id of the call): a heap
        self._asked: int | None = None
        self._turns = self._all_turns = 0
        self._ended = False

    # Events.

    def take(self, payload: bytes) -> None:
        """Take an event of the host; it reaches the guest when that is quiet."""
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
        self._world.start(now, base64.b64decode(setup["seed"]), from_wire(setup["env"]))
        self._lines.left = setup["max_log_bytes"]
        nodes, paths, given = _givens(tuple(setup["sources"]))
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

    # What the worker says.

    def hear(self, message: Message) -> None:
        """Take a message of the worker. A WireError means that it broke the protocol."""
        if self._ended or isinstance(message, GaveUp):  # whose death follows, and says so
            return
        if isinstance(message, Printed):
            self._log(message)
            return
        if self._wait is not None:
            raise WireError("the worker spoke out of turn")
        self._all_turns += 1
        if self._all_turns > MOST_TURNS:
            told = f"the program asked its host for something more than {MOST_TURNS:,} times"
            self._done_error({"type": "RuntimeError", "message": told})
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
                self._done_error(self._failures.describe(message, PROGRAM_FILE))
            case _:
                raise WireError("the worker answered what it was not asked")
        self._pump()

    def _log(self, printed: Printed) -> None:
        for level, text in self._lines.take(printed):
            self._say(b'["log","%b",%b]' % (level.encode(), encode(text)))

    # Names and objects. A path is collected by attribute reads and sent when it is called; the host looks every name up.

    def _object(self, writer: Writer, path: str) -> int:
        self._paths.append(path)
        return writer.add_object(len(self._paths), {})

    def _path(self, receiver: int, name: str = "") -> str:
        if not 0 < receiver <= len(self._paths):
            raise WireError("the worker named an object that it was not given")
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
            if not named.name.startswith("__") and len(path) <= LONGEST_PATH and len(self._paths) < MOST_OBJECTS:
                index = self._object(writer, path)
        elif named.name == "input" and not ASKS.search(self._setup["code"]):
            pass  # a run without an input has no such name, unless the program means Python's function
        elif named.name in FUNCTIONS or no_builtin(named.name):
            index = writer.add_function(named.name)  # one that Monty lacks is missed when it is called
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
        self._answer(called.call, self._failures.failed(fields))

    def _refused(self, oversized: Oversized) -> None:
        called = oversized.call
        name = called.name if called.receiver is None else f"tools.{self._path(called.receiver, called.name)}"
        self._fail(called, self._too_large(name, oversized.size))

    def _too_large(self, name: str, size: int) -> dict[str, Any]:
        message = f"{name}: {size:,} bytes are over the limit of {self._setup['max_frame_bytes']:,} for one message"
        tool = {"tool": name.removeprefix("tools.")} if name.startswith("tools.") else {}
        return {"message": message, "code": "frame-too-large", **tool}

    def _call_tool(self, called: Called) -> None:
        assert called.receiver is not None
        name = self._path(called.receiver, called.name)
        if called.name == "__call__":
            name = name.rpartition(".")[0]
        if not name:
            message = "`tools` is not a function: call tools.<source>.<name>(…)"
            self._fail(called, {"message": message, "code": "unknown-tool"})
            return
        try:
            args = self._arguments(called, name)
        except ValueCrossingError as error:
            self._fail(called, {"message": f"tools.{name}: {error.message}", "code": "bad-value", "tool": name})
            return
        except TooHeavyError as error:
            self._fail(called, self._too_large(f"tools.{name}", error.size))
            return
        self._last_id += 1
        self._calls[self._last_id] = called.call
        self._say(b'["call",%d,%b,%b]' % (self._last_id, encode(name), args))
        if called.awaited:
            self._wait = partial(self._until_reply, self._last_id, self._settle)
        else:
            self._answer(called.call, Promised())

    def _arguments(self, called: Called, name: str) -> bytes:
        values = [self._value(called, index) for index in called.args]
        options = {self._value(called, key): self._value(called, index) for key, index in called.options}
        if options and values:
            raise ValueCrossingError("it takes keywords, one dict, or positional arguments; not both")
        values = [options] if options else values
        named = "argument" if len(values) == 1 else "argument {}"
        text = b"[%b]" % b",".join(encode(value, named.format(index)) for index, value in enumerate(values, 1))
        if len(text) + len(name) + 64 > self._setup["max_frame_bytes"]:
            raise TooHeavyError(len(text))
        return text

    def _value(self, called: Called, index: int) -> Any:
        return called.table.take(index, self._setup["max_frame_bytes"])

    def _call_function(self, called: Called) -> None:
        writer = Writer()
        first = self._value(called, called.args[0]) if called.args else None
        match called.name:
            case "emit":
                self._say(b'["emit",%b]' % encode(first, "emit"))
                self._answer(called.call, Returned(writer.add(None)), writer.table())
            case "_gloveport_fields":
                self._answer(
                    called.call,
                    Returned(writer.add(self._failures.find(first if isinstance(first, str) else ""))),
                    writer.table(),
                )
            case "_gloveport_keep":
                encode(first, "error")  # what can't cross can't be kept
                kept = self._failures.keep(first if isinstance(first, dict) else {})
                self._answer(called.call, Returned(writer.add(kept)), writer.table())
            case "_gloveport_cause":
                told = [self._value(called, index) for index in called.args]
                if [*map(type, told)] == [str] * 4:
                    self._failures.add_cause(*told)
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
        """Ask the host something that the whole guest waits for."""
        self._last_id += 1
        self._say(b'["call_sync",%d,%b,%b]' % (self._last_id, encode(name), encode(args)))
        self._wait = partial(self._until_reply, self._last_id, partial(self._looked_up, then))

    def _looked_up(self, then: Callable[[int | None, bytes], None], event: Event) -> None:
        writer = Writer()
        index = writer.add(from_wire(event[4])) if event[3] else None
        then(index, writer.table())

    # Waiting. While the guest waits for one thing, what else comes is held until it is quiet.

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
        self._world.advance(event[1])

    def _quiet(self, waiting: Waiting) -> None:
        due = self._sleeps[0][0] if self._sleeps else None
        if due is not None and due <= self._world.now and self._turns < MANY_TURNS:
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
        else:  # nobody waits for it any more
            self._calls.pop(event[2], None)
            self._quiet(waiting)

    def _settle(self, event: Event) -> None:
        """Give the reply to a call to the program."""
        call = self._calls.pop(event[2])
        writer = Writer()
        if event[3]:
            answer: Answer = Returned(writer.add(from_wire(event[4])))
        else:
            answer = self._failures.settled(from_wire(event[4]))
        self._resume(messages.resume_futures([(call, answer)], writer.table()))

    # Sleeping.

    def _asked_for(self, asked: Asked) -> None:
        if asked.what not in (messages.SLEEP, messages.ASYNC_SLEEP):
            answer, table = self._world.answer(asked)
            self._answer(asked.call, answer, table)
            return
        seconds = messages.seconds_of(asked)
        seconds = 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_SLEEP)
        at = self._world.now + round(seconds * MICROS)
        if asked.what == messages.ASYNC_SLEEP:
            heapq.heappush(self._sleeps, (at, asked.call))
            self._answer(asked.call, Promised())
        elif at == self._world.now:
            writer = Writer()
            self._answer(asked.call, Returned(writer.add(None)), writer.table())
        else:
            self._ask(at)
            self._wait = partial(self._until_time, at, asked.call)

    def _ask(self, at: int | None) -> None:
        if at != self._asked:
            self._asked = at
            self._say(b'["timer",%b]' % (b"null" if at is None else b"%d" % at))

    def _wake(self) -> None:
        """End the sleeps whose time has come."""
        writer = Writer()
        nothing = Returned(writer.add(None))
        ended: list[tuple[int, Answer]] = []
        while self._sleeps and self._sleeps[0][0] <= self._world.now:
            ended.append((heapq.heappop(self._sleeps)[1], nothing))
        self._resume(messages.resume_futures(ended, writer.table()))

    # The end.

    @property
    def max_message(self) -> int:
        """The bytes that a message of the worker may have."""
        return self._setup.get("max_frame_bytes", 64 * 1024)

    def break_off(self, error: WireError) -> None:
        """End the run: the worker said what can't be taken."""
        if self._ended:
            return
        if error.code == "bad-value":
            self._done_error({"type": "ValueError", "code": error.code, "message": error.message})
        else:
            self._ended = True
            self._say(b'["violation"]')  # which the host takes for what it is

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
        """End the run: its result has more bytes than one message may have."""
        if self._ended:
            return
        message = f"the result is too large: {size:,} bytes are over the limit of {self._setup['max_frame_bytes']:,}"
        self._done_error({"type": "ValueError", "code": "result-too-large", "message": f"{message} for one message"})

    def _never_settles(self, waiting: Waiting) -> dict[str, Any]:
        told = {"type": "RuntimeError", "code": "never-settles", "message": NEVER_SETTLES}
        if waiting.file != PROGRAM_FILE:
            return told
        before = self._setup["code"].encode()[: waiting.offset].decode(errors="ignore")
        return told | {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}

    def _done_error(self, error: Mapping[str, Any]) -> None:
        try:
            told = encode(dict(error), "error")
        except ValueCrossingError:
            told = encode({"type": error.get("type"), "message": error.get("message")})
        self._done(b'"error",%b' % told)

    def _done(self, result: bytes) -> None:
        self._ended = True
        for level, text in self._lines.end():
            self._say(b'["log","%b",%b]' % (level.encode(), encode(text)))
        notes = {"pending": list(self._calls), "unhandled": self._failures.unseen(), "dropped": self._lines.dropped}
        self._say(b'["done",%b,%b]' % (result, encode(notes)))
