"""A host for guests of the CPython engine: it answers calls, moves the clock, and records events and frames.

Guests are forked from one preloaded process, as the zygote does it, but without a jail.
"""

import base64
import contextlib
import fcntl
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gloveport

GUEST = Path(gloveport.__file__).parent / "sandbox/engines/cpython/guest"
DEADLINE = 120.0
START = 1_700_000_000_000_000  # microseconds: 2023-11-14T22:13:20Z
STEP = 1_000
SEED = bytes(range(32))

ZYGOTE = """
import os, signal, socket, sys
import gloveport_guest
exit_now, asked = os._exit, socket.socket(fileno=int(sys.argv[1]))  # preload() replaces both
gloveport_guest.preload()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
asked.send(b"!")
while True:
    data, fds, _, _ = socket.recv_fds(asked, 1, 1)
    if not data:
        exit_now(0)
    child = os.fork()
    if not child:
        break
    asked.send(b"%d" % child)
    os.close(fds[0])
asked.close()
os.dup2(fds[0], 0)
os.dup2(fds[0], 1)
os.close(fds[0])
gloveport_guest.main()
"""

STILL = """
import ctypes, os, sys
ctypes.CDLL(None).personality(0x0040000)  # ADDR_NO_RANDOMIZE, for what is exec'd
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class Still:
    """Starts guests as separate processes with the same addresses in each, like the guests of the real zygote."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def guest(self) -> "Guest":
        """A new guest."""
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE)
        with theirs:
            flags = ["-S", "-s", "-P", "-B"]
            process = subprocess.Popen(
                [sys.executable, "-S", "-c", STILL, *flags, "-c", "import gloveport_guest; gloveport_guest.main()"],
                stdin=theirs,
                stdout=theirs,
                env={"PYTHONPATH": str(GUEST), "PYTHONHASHSEED": "0"},
                cwd="/",
            )
        self._processes.append(process)
        return Guest(ours, process.pid)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.wait(DEADLINE)


class Zygote:
    """A process that forks guests; each is a socket to a new fork."""

    def __init__(self) -> None:
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        flags = ["-S", "-s", "-P"]
        self._process = subprocess.Popen(
            [sys.executable, *flags, "-c", ZYGOTE, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": str(GUEST), "PYTHONHASHSEED": "0"},
            cwd="/",
        )
        theirs.close()
        self._asking.settimeout(DEADLINE)
        assert self._asking.recv(1) == b"!"

    def guest(self) -> "Guest":
        """A new guest."""
        ours, theirs = socket.socketpair()
        ours.settimeout(DEADLINE)
        with theirs:
            socket.send_fds(self._asking, [b"?"], [theirs.fileno()])
        return Guest(ours, int(self._asking.recv(20)))

    def close(self) -> None:
        """End the process."""
        self._asking.close()
        self._process.kill()
        self._process.wait(DEADLINE)


class Guest:
    """The host's end of a guest's socket, with views of the state of its process."""

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.channel = channel
        self._pid = pid
        self._stat = Path(f"/proc/{pid}/stat")

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *error: object) -> None:
        self.channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def speaks(self, seconds: float = 0) -> bool:
        """Return whether there is something to read, or the end of the stream."""
        return bool(select.select([self.channel], [], [], seconds)[0])

    def ended(self) -> bool:
        """Return whether its process ends within the deadline."""
        end = time.monotonic() + DEADLINE
        while self._stat.exists() and time.monotonic() < end:
            time.sleep(0.001)
        return not self._stat.exists()

    def is_quiet(self) -> bool:
        """Return whether the guest has read everything and sleeps."""
        unread = struct.unpack("i", fcntl.ioctl(self.channel, termios.TIOCOUTQ, bytes(4)))[0]
        return unread == 0 and self._stat.read_text().rpartition(")")[2].split()[0] == "S"


class Failure(Exception):
    """A tool's failure, with the fields that the guest receives."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.fields = {"message": message, "code": "tool-failed", "retryable": False} | fields


HOLD = object()
"""What a tool gives whose answer does not come."""


def echo(args: list[Any]) -> Any:
    """Return the argument `value`, or all arguments."""
    return args[0]["value"] if args and isinstance(args[0], dict) and "value" in args[0] else args


def add(args: list[Any]) -> Any:
    """Return the sum of a and b."""
    return args[0]["a"] + args[0]["b"]


def fail(args: list[Any]) -> Any:
    """Fail."""
    raise Failure("no luck", tool="fail", status=418, hint="try later", data={"left": 3})


TOOLS: dict[str, Callable[[list[Any]], Any]] = {
    "echo": echo,
    "add": add,
    "local.add": add,
    "fail": fail,
    "never": lambda args: HOLD,
    "search": lambda args: [{"path": "add"}],
    "raw": lambda args: args,
    "parameters": lambda args: ["a", "b"],
}


@dataclass
class Run:
    """What a guest did: the events it received, the frames it sent, and its result."""

    events: list[bytes] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    messages: list[list[Any]] = field(default_factory=list)

    @property
    def done(self) -> list[Any]:
        """Return the done frame."""
        assert self.messages[-1][0] == "done", self.messages
        return self.messages[-1]

    @property
    def value(self) -> Any:
        """Return the result; an error fails the test."""
        assert self.done[1] == "value", self.done
        return self.done[2]

    @property
    def error(self) -> dict[str, Any]:
        """Return the error that ended the program."""
        assert self.done[1] == "error", self.done
        return self.done[2]

    @property
    def notes(self) -> dict[str, Any]:
        """Return the notes of the done frame."""
        return self.done[3]

    def of(self, kind: str) -> list[list[Any]]:
        """Return the frames of one kind, without the kind."""
        return [message[1:] for message in self.messages if message[0] == kind]

    @property
    def logs(self) -> list[tuple[str, str]]:
        """Return the log lines as (level, text)."""
        return [(level, text) for level, text in self.of("log")]

    @property
    def printed(self) -> str:
        """Return what was printed to standard output."""
        return "\n".join(text for level, text in self.logs if level == "log")


class Frames:
    """Splits what a guest sends into frames."""

    def __init__(self, guest: Guest) -> None:
        self._channel = guest.channel
        self._data = b""

    def next(self) -> list[bytes]:
        """Return the frames that have arrived; wait for at least one."""
        while True:
            frames = []
            while len(self._data) >= 4 and len(self._data) >= (size := int.from_bytes(self._data[:4]) + 4):
                frames.append(self._data[4:size])
                self._data = self._data[size:]
            if frames:
                return frames
            data = self._channel.recv(1 << 20)
            if not data:
                raise EOFError("the guest has ended")
            self._data += data


def pack(payload: bytes) -> bytes:
    """A frame."""
    return len(payload).to_bytes(4) + payload


def setup_of(code: str, **changes: Any) -> dict[str, Any]:
    """Return the setup of a run."""
    setup = {
        "code": code,
        "dialect": "python",
        "entry": "body",
        "seed": base64.b64encode(SEED).decode(),
        "env": {},
        "sources": ["local"],
        "has_input": "input" in changes,
        "max_frame_bytes": 1 << 24,
        "max_log_bytes": 1 << 18,
    }
    return setup | changes


class Host:
    """Runs programs in guests. `order` chooses the next event; without it, calls are answered as they come."""

    def __init__(self, zygote: "Zygote | Still", tools: dict[str, Any] | None = None) -> None:
        self._zygote = zygote
        self._tools = TOOLS | (tools or {})

    def run(self, code: str, *, order: random.Random | None = None, **changes: Any) -> Run:
        """Run a program to its end."""
        with self._zygote.guest() as guest:
            return _Session(guest, self._tools, order).run(setup_of(code, **changes))

    def replay(self, run: Run) -> list[bytes]:
        """Send the events of a run to a new guest, all at once; return its frames."""
        with self._zygote.guest() as guest:
            guest.channel.sendall(b"".join(pack(event) for event in run.events))
            frames, seen = Frames(guest), []
            while not (seen and seen[-1].startswith(b'["done"')):
                seen += frames.next()
        return seen


class _Session:
    def __init__(self, guest: Guest, tools: dict[str, Any], order: random.Random | None) -> None:
        self._guest = guest
        self._tools = tools
        self._order = order
        self._now = START
        self._due: float | None = None
        self._open: list[tuple[int, str, list[Any]]] = []
        self._run = Run()

    def run(self, setup: dict[str, Any]) -> Run:
        frames = Frames(self._guest)
        self._take(frames.next())
        self._send(["start", self._now, setup])
        end = time.monotonic() + DEADLINE
        while self._run.messages[-1][0] != "done":
            assert time.monotonic() < end, "the guest takes too long"
            if self._guest.speaks():
                self._take(frames.next())
            elif self._hurry() or (self._guest.is_quiet() and not self._guest.speaks()):
                self._happen()
            else:
                self._guest.speaks(0.001)
        return self._run

    def _hurry(self) -> bool:
        """Sometimes send events before the guest has gone quiet."""
        return self._order is not None and bool(self._choices()) and self._order.random() < 0.3

    def _take(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._run.frames.append(frame)
            message = json.loads(frame)
            self._run.messages.append(message)
            if message[0] == "timer":
                self._due = message[1]
            elif message[0] == "call":
                self._open.append((message[1], message[2], message[3]))
            elif message[0] == "call_sync":
                self._answer(message[1], message[2], message[3])

    def _choices(self) -> list[Any]:
        """Return what can happen next: the answer to an open call, or the timer."""
        calls = [call for call in self._open if self._tools.get(call[1]) is not TOOLS["never"]]
        return [*calls, *(["timer"] if self._due is not None else [])]

    def _happen(self) -> None:
        """Send one event."""
        choices = self._choices()
        assert choices, "the guest waits, and there is nothing to wait for"
        chosen = self._order.choice(choices) if self._order else choices[0]
        if chosen == "timer":
            self._now = max(self._now + STEP, int(self._due or 0))
            self._due = None
            self._send(["timer", self._now])
            return
        self._open.remove(chosen)
        self._answer(*chosen)

    def _answer(self, call_id: int, name: str, args: list[Any]) -> None:
        self._now += STEP
        try:
            if name == "names":
                value = sorted({tool.partition(".")[0] for tool in self._tools} if not args[0] else ["add"])
            elif name in ("interface", "interfaces"):
                value = f"{name} {args}"
            elif name not in self._tools:
                raise Failure(f"no tool `tools.{name}`", code="unknown-tool")
            else:
                value = self._tools[name](args)
        except Failure as failure:
            self._send(["reply", self._now, call_id, False, failure.fields])
        else:
            self._send(["reply", self._now, call_id, True, value])

    def _send(self, event: list[Any]) -> None:
        payload = json.dumps(event).encode()
        self._run.events.append(payload)
        self._guest.channel.sendall(pack(payload))
