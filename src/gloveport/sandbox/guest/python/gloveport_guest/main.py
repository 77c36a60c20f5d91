"""The guest's entry: get ready before the fork; then say ready, wait for the program, run it, and tell how it ended."""

from __future__ import annotations

import base64
import builtins
import gc
import os
import platform
import sys
import time
import traceback
from typing import Any, NoReturn

from . import givens, program
from .clock import Clock, os_times, restart_logging, time_functions, turn_datetime
from .errors import (
    NEVER_SETTLES,
    NeverSettles,
    describe,
    describe_load,
    describe_shortly,
    message_of,
    name_of,
    place_of_wait,
    show_only_the_program,
)
from .loop import Loop, turn_asyncio
from .output import Output
from .randomness import Randomness, start_random, turn_random
from .rehearsal import rehearse
from .swap import Plan
from .threads import turn_threads
from .tools import Calls, Node
from .values import CrossingError, decode, encode, quote
from .wire import Channel, FrameTooLarge

PROTOCOL = 1
VERSION = f"cpython {platform.python_version()}"
BALLAST = 512 * 1024  # given back when memory runs out, so that the end can be told

COMMON = """
abc argparse array asyncio base64 binascii bisect bz2 calendar cmath codecs collections collections.abc
concurrent.futures.thread configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib
email.message email.utils enum fnmatch fractions functools getpass glob graphlib gzip hashlib heapq hmac html html.parser
http inspect io ipaddress itertools json keyword linecache locale logging lzma math mimetypes numbers operator os.path
pathlib pickle pprint queue random re sched secrets shlex shutil sqlite3 statistics string struct tempfile textwrap
threading time timeit traceback types typing unicodedata urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile
zlib zoneinfo _strptime _ssl
"""


_exit, _write = os._exit, os.write


class Guest:
    """One program in one process."""

    def __init__(self, channel: Channel, clock: Clock, randomness: Randomness) -> None:
        self.channel = channel
        self.clock = clock
        self.randomness = randomness
        self.loop = Loop(channel, clock)
        self.calls = self.loop.calls = Calls(channel, clock, self.loop)
        self.tools = Node(self.calls, "")
        self.output = Output(channel)
        self._ballast: bytearray | None = bytearray(BALLAST)

    def run(self, setup: dict[str, Any], names: dict[str, Any]) -> str:
        """Run the program to its end; the middle of the done frame: how it ended, and with what."""
        try:
            parts = program.compile_program(setup["code"])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f'"error",{encode(describe_load(error), "error")}'
        space = program.make_space(setup["code"])
        builtins.__dict__.update(names)
        given = {"input": setup.get("input"), "tools": self.tools} if setup["has_input"] else {"tools": self.tools}
        task = self.loop.create_task(self._program(parts, space, setup["entry"], given))
        try:
            self.loop.drive(task)
            return self._value(task.result())
        except NeverSettles:
            place = place_of_wait(task.get_coro())
            return f'"error",{encode(_never_settles() | place, "error")}'
        except BaseException as error:
            self._ballast = None
            _ = task.done() and not task.cancelled() and task.exception()  # seen: it is not one that nobody looked at
            return f'"error",{_describe(error)}'

    async def _program(self, parts: Any, space: dict[str, Any], entry: str, given: dict[str, Any]) -> Any:
        value = await program.run_program(parts, space)
        return await program.call_main(space, given) if entry == "function" else value

    def _value(self, value: Any) -> str:
        try:
            return f'"value",{encode(value, "result")}'
        except CrossingError as error:
            return f'"error",{{"type":"TypeError","code":"bad-value","message":{quote(str(error))}}}'

    def finish(self, result: str) -> None:
        """Tell the host how it ended."""
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
            self.channel.send(f'["done",{result},{encode(notes, "notes")}]')
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


class _Prepared:
    """What is made once before the fork and used once after it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.randomness = Randomness()
        ours = time_functions(self.clock)
        pairs = [(getattr(time, name), function) for name, function in ours.items() if hasattr(time, name)]
        sources = (("os", "urandom"), ("os", "getrandom"), ("_ssl", "RAND_bytes"))
        held = [getattr(sys.modules.get(module), name, None) for module, name in sources]
        random = [(function, self.randomness.bytes) for function in held if function is not None]
        self.sleep = _Sleep()
        others = [(time.sleep, self.sleep.sleep), (os.times, os_times(self.clock))]
        self.plan = Plan([*pairs, *random, *others])


class _Sleep:
    """time.sleep, which goes to the loop that the process will have."""

    def __init__(self) -> None:
        self.loop: Loop | None = None

    def sleep(self, seconds: float, /) -> None:
        """As time.sleep."""
        assert self.loop is not None
        self.loop.block(seconds)


_prepared: _Prepared | None = None


def preload() -> None:
    """Called once, before any fork: import what programs use, walk the paths that they take, and leave the memory still."""
    global _prepared
    for name in COMMON.split():
        try:
            __import__(name)
        except ImportError:  # not every build has all of them
            continue
    os.environ["TZ"] = "UTC"
    time.tzset()
    rehearse(_perform)
    _prepared = _Prepared()
    gc.collect()
    gc.freeze()


def _perform(channel: Channel, script: str) -> str:
    """A whole run, on the stage of a rehearsal."""
    guest = Guest(channel, Clock(), Randomness())
    guest.output.left = 1000
    guest.loop.start()
    sys.stdout = guest.output.streams[0]
    setup = {"code": script, "has_input": False, "entry": "body", "sources": []}
    names = givens.names(setup, guest.calls, guest.tools, guest.output.emit)
    result = guest.run(setup, names)
    guest.finish(result)
    return result


def _take_channel() -> int:
    """The socket, moved away from standard input and output: what the program writes there is not taken for a frame."""
    fd = os.dup(0)
    os.set_inheritable(fd, False)
    try:
        os.fstat(2)
    except OSError:
        return fd
    for standard in (0, 1):
        os.close(standard)
        os.dup(2)  # takes the lowest free number, which is the one just closed
    return fd


def main() -> NoReturn:
    """Called in the forked, jailed process: run one program, and wait for the end of the process. Never returns."""
    try:
        _main()
    except BaseException:
        _write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        _exit(70)


def _main() -> NoReturn:
    if _prepared is None:
        preload()
    prepared = _prepared
    assert prepared is not None
    channel = Channel(_take_channel())
    guest = Guest(channel, prepared.clock, prepared.randomness)
    prepared.sleep.loop = guest.loop
    prepared.plan.carry_out()
    turn_datetime(prepared.clock)
    turn_random(prepared.randomness)
    start_random(prepared.randomness, bytes(32))
    givens.set_environment({})
    rehearse(_perform)
    turn_threads(guest.loop.block)
    turn_asyncio(guest.loop)
    givens.turn_process()
    show_only_the_program()
    guest.output.install()
    guest.loop.start()
    channel.send(f'["ready",{PROTOCOL},{quote(VERSION)}]')
    channel.flush()
    _, now, setup = channel.next_event()
    prepared.clock.start(now)
    _run(guest, setup)
    while True:
        channel.next_event()  # the host ends this process; nothing of the program runs any more


def _run(guest: Guest, setup: dict[str, Any]) -> None:
    guest.channel.max_frame = setup["max_frame_bytes"]
    guest.output.left = setup["max_log_bytes"]
    start_random(guest.randomness, base64.b64decode(setup["seed"]))
    restart_logging(guest.clock)
    givens.set_environment(setup["env"])
    if setup["has_input"]:
        setup["input"] = decode(setup.get("input"))
    names = givens.names(setup, guest.calls, guest.tools, guest.output.emit)
    guest.finish(guest.run(setup, names))
