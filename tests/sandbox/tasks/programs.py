"""Tasks for the tests, run in the jail: some of them do what a process does that hostile text has taken over."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import time
from collections.abc import Callable, Iterator

FACTS = {"dialect": "javascript", "entry": "body", "spans": [], "tail": None, "possible": True, "names": [], "imports": []}
FACTS |= {"is_light": False}
_seen: list[bytes] = []
Ask = Callable[[bytes], bytes | None]


def rehearse() -> None:
    """Load nothing: everything is loaded."""


def echo(parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Yield the parts."""
    yield from parts


def ask_back(parts: list[bytes], ask: Ask) -> Iterator[bytes]:
    """Yield the answers to each part as a question."""
    for part in parts:
        yield ask(part) or b"nothing"


def count(parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Yield how many tasks this process has counted, this one included."""
    _seen.extend(parts)
    yield str(len(_seen)).encode()


def spin(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Use CPU time for ever."""
    while True:
        pass
    yield b""


def allocate(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Use memory without end, as pages that are only read and as pages that are written."""
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 16)) * 64)
    yield b""


def recurse(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Nest a value too deeply for its reader."""
    yield json.dumps(json.loads("[" * 100_000 + "]" * 100_000)).encode()


def die(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Crash the process."""
    yield ctypes.string_at(0)


def fail(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Raise what only a defect raises."""
    raise ZeroDivisionError("a defect")
    yield b""


def flood(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Yield without end."""
    while True:
        yield bytes(1 << 16)


def reach_out(_parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Yield what the process can reach: files, network, environment."""
    attempts = {
        "file": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "file of ours": lambda: os.open("/packages/gloveport/new", os.O_WRONLY | os.O_CREAT),
        "network": lambda: socket.create_connection(("127.0.0.1", 1), 1),
        "process": os.fork,
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            yield name.encode()
        except OSError:
            continue


def prepare_program(parts: list[bytes], ask: Ask) -> Iterator[bytes]:
    """Answer as a process that hostile text has taken over: the text says how."""
    text = parts[1].decode()
    kind, _, rest = text.partition("|")
    _seen.append(parts[1])
    if kind == "program":
        yield json.dumps(FACTS).encode()
        yield rest.encode()
    elif kind == "seen":
        yield json.dumps(FACTS).encode()
        yield f"export default async () => {json.dumps([seen.decode() for seen in _seen])}".encode()
    elif kind == "facts":
        yield json.dumps(FACTS | json.loads(rest)).encode()
        yield b"export default async () => 1"
    elif kind == "frames":
        yield from (bytes.fromhex(part) for part in rest.split())
    elif kind == "raise":
        raise type("ProgramError", (Exception,), {})(rest) if not rest else _forged(rest)
    elif kind == "questions":
        while ask(b"x" * 100_000):
            pass
    elif kind == "wait":
        time.sleep(3600)


def report_findings(parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Report what the text says, as it stands."""
    yield parts[1]


def _forged(code: str) -> Exception:
    error = type("ProgramError", (Exception,), {})()
    vars(error).update(code=code, message="forged", line=-5, column=10**6, frame="\x1b[2J")
    return error
