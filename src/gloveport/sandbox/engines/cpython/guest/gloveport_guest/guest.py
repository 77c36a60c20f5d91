"""One program in one process: run it to its end and report the result."""

from __future__ import annotations

import builtins
import mmap
from typing import Any

from . import program
from .clock import Clock
from .errors import (
    NEVER_SETTLES,
    NeverSettles,
    describe,
    describe_load,
    describe_shortly,
    message_of,
    name_of,
    place_of_wait,
)
from .loop import Loop
from .output import Output
from .randomness import Randomness
from .tools import Calls, Node
from .values import CrossingError, encode, quote
from .web import Web
from .wire import Channel, FrameTooLarge

RESERVE_BYTES = 512 * 1024  # freed when memory runs out, so that the result can still be sent


class Guest:
    """One program in one process."""

    def __init__(self, channel: Channel, clock: Clock, randomness: Randomness) -> None:
        self.channel = channel
        self.clock = clock
        self.randomness = randomness
        self.loop = Loop(channel, clock)
        self.calls = self.loop.calls = Calls(channel, clock, self.loop)
        self.tools = Node(self.calls, "")
        self.web = Web(self.calls)
        self.output = Output(channel)
        self.keeps_state = False
        self._state = ""  # encoded, at the end of a run of a session that has a result
        self._ballast = mmap.mmap(
            -1, RESERVE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )  # never written to, so it costs no memory

    def run(self, setup: dict[str, Any], names: dict[str, Any]) -> str:
        """Run the program to its end and return the middle of the done frame: how it ended, and with what."""
        try:
            parts = program.compile_program(setup["code"], setup.get("tail"))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f'"error",{encode(describe_load(error), "error")}'
        space = program.make_space(setup["code"])
        builtins.__dict__.update(names)
        given = {"input": setup.get("input"), "tools": self.tools} if setup["has_input"] else {"tools": self.tools}
        task = self.loop.create_task(self._program(parts, space, setup["entry"], given))
        try:
            self.loop.drive(task)
            return self._value(task.result(), names["state"])
        except NeverSettles:
            place = place_of_wait(task.get_coro())
            return f'"error",{encode(_never_settles() | place, "error")}'
        except BaseException as error:
            self._ballast.close()
            _ = task.done() and not task.cancelled() and task.exception()  # mark the exception as retrieved
            return f'"error",{_describe(error)}'

    async def _program(self, parts: Any, space: dict[str, Any], entry: str, given: dict[str, Any]) -> Any:
        value = await program.run_program(parts, space)
        return await program.call_main(space, given) if entry == "function" else value

    def is_untouched(self) -> bool:
        """Return whether nothing was written, called or scheduled so far."""
        return not (self.output.dropped or self.calls.waiting or self.loop.is_busy())

    def _value(self, value: Any, state: Any) -> str:
        try:
            if self.keeps_state:
                self._state = encode(state, "state")
            return f'"value",{encode(value, "result")}'
        except CrossingError as error:
            return f'"error",{{"type":"TypeError","code":"bad-value","message":{quote(str(error))}}}'

    def finish(self, result: str) -> None:
        """Send the host the result."""
        self.output.end()
        self.loop.note_failed_tasks()
        for error in self.calls.unseen_failures():
            self.loop.note_unhandled(error)
        notes = {
            "pending": list(self.calls.waiting),
            "unhandled": [{"type": name_of(type(error)), "message": message_of(error)} for error in self.loop.unhandled],
            "dropped": self.output.dropped,
        }
        try:
            state = f',"state":{self._state}' if self._state else ""
            self.channel.send(f'["done",{result},{encode(notes, "notes")[:-1]}{state}}}]')
        except FrameTooLarge as error:
            failure = {"type": "ValueError", "code": "result-too-large", "message": f"the result is too large: {error}"}
            notes["unhandled"] = []
            self.channel.send(f'["done","error",{encode(failure, "error")},{encode(notes, "notes")}]')
        self.channel.flush()


def _describe(error: BaseException) -> str:
    try:
        return encode(describe(error, encode), "error")
    except BaseException:
        return encode(describe_shortly(error), "error")


def _never_settles() -> dict[str, Any]:
    return {"type": "RuntimeError", "code": "never-settles", "message": NEVER_SETTLES}
