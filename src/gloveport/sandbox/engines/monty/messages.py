"""The messages to and from a Monty worker: version 6 of its protocol, which `pydantic-monty` 1.4 speaks.

    checkout (Configure) ─► Done
    feed_start (Feed) ─► Printed… ─► one of Called · Asked · Named · Waiting · Completed · Raised
    resume (ResumeCall, ResumeNameLookup, ResumeFutures) ─► the same again

The two sides alternate strictly: one request, then any number of `Printed` and exactly one other message. The names are
those of `pydantic_monty`'s own methods, which send the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gloveport.errors import WireError
from gloveport.sandbox.engines.monty import protobuf
from gloveport.sandbox.engines.monty.nodes import Table, identity_of
from gloveport.sandbox.engines.monty.protobuf import Fields, as_bytes, as_number, as_text

PROTOCOL = 6
HEADER = 4
CALL_KEY = 2 << 3 | protobuf.BYTES
"""The first byte of a message that carries a call."""

COMPLETE_KEY = 6 << 3 | protobuf.BYTES
"""The first byte of a message that carries the result."""

MAX_RECURSION_DEPTH = 1000
ASSERTS_AS_IN_CPYTHON = 0


# ── requests ──


@dataclass(frozen=True, slots=True)
class Returned:
    """A call returned a value: an index into the table of the request."""

    index: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A call failed with a built-in exception."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Promised:
    """A call is pending: the program gets a future to await."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call was not made: its name is not defined, or (without a name) it needs an operating system."""

    name: str | None = None


Answer = Returned | Failed | Promised | Refused


def checkout(version: str) -> bytes:
    """Start a session. The host answers for time, sleep and randomness, and limits memory from outside."""
    limits = protobuf.number(4, MAX_RECURSION_DEPTH)
    policy = protobuf.block(2) + protobuf.block(4, protobuf.block(1)) + protobuf.block(5, protobuf.block(2))
    policy += protobuf.block(7) + protobuf.block(9)
    fields = [
        protobuf.text(1, "program.py"),
        protobuf.block(2, limits),
        protobuf.text(5, version),
        protobuf.number(6, ASSERTS_AS_IN_CPYTHON),
        protobuf.number(9, PROTOCOL),
        protobuf.block(11, policy),
    ]
    return _framed(1, b"".join(fields))


def feed_start(code: str, inputs: Iterable[tuple[str, int]] = (), table: bytes = b"") -> bytes:
    """Run code with these names defined."""
    given = b"".join(protobuf.block(2, protobuf.text(1, name) + protobuf.number(2, index)) for name, index in inputs)
    return _framed(3, protobuf.text(1, code) + given + protobuf.block(3, table) + protobuf.text(5, "/"))


def resume_call(call: int, answer: Answer, table: bytes = b"") -> bytes:
    """Answer a call."""
    content = protobuf.number(1, call) + protobuf.block(2, _answer(call, answer))
    return _framed(4, content + (protobuf.block(3, table) if table else b""))


def resume_name(index: int | None, table: bytes = b"") -> bytes:
    """Answer a name lookup with a value of the table, or with None when there is no such name."""
    return _framed(5, protobuf.block(3) if index is None else protobuf.block(1, table) + protobuf.number(2, index))


def resume_futures(answers: Iterable[tuple[int, Answer]], table: bytes = b"") -> bytes:
    """Settle pending calls."""
    results = [
        protobuf.block(1, protobuf.number(1, call) + protobuf.block(2, _answer(call, answer))) for call, answer in answers
    ]
    return _framed(6, b"".join(results) + (protobuf.block(2, table) if table else b""))


def _answer(call: int, answer: Answer) -> bytes:
    match answer:
        case Returned(index):
            return protobuf.number(1, index)
        case Failed(kind, message):
            return protobuf.block(2, protobuf.text(1, kind) + protobuf.text(2, message))
        case Promised():
            return protobuf.number(3, call)
        case Refused(None):
            return protobuf.block(5)
        case Refused(str(name)):
            return protobuf.text(4, name)
    raise AssertionError(answer)


def _framed(field: int, content: bytes) -> bytes:
    payload = protobuf.block(field, content)
    return len(payload).to_bytes(HEADER, "little") + payload


# ── messages of the worker ──


@dataclass(frozen=True, slots=True)
class Printed:
    """Output: pieces of text, each with a flag for stderr."""

    pieces: tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class Called:
    """The program called a function of the host, or (with `receiver`) a method of an object of the host.

    `awaited` means that nothing else in the program can run before the answer.
    """

    call: int
    name: str
    receiver: int | None
    args: tuple[int, ...]
    options: tuple[tuple[int, int], ...]
    table: Table
    awaited: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """The program made an operating system call. `what` is the number of the field for it, `fields` its content."""

    call: int
    what: int
    fields: Fields
    table: Table


@dataclass(frozen=True, slots=True)
class Named:
    """The program read a name that is not defined, or (with `receiver`) an attribute of an object of the host."""

    name: str
    receiver: int | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """All of the program waits for pending calls: the guest is quiet. `offset` is the place, in bytes of UTF-8."""

    calls: tuple[int, ...]
    file: str
    offset: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The code ran to its end or to its `return`."""

    index: int
    table: Table


@dataclass(frozen=True, slots=True)
class Place:
    """A frame of a traceback. `function` is None for code that can't be parsed."""

    file: str
    line: int
    column: int
    function: str | None


@dataclass(frozen=True, slots=True)
class Raised:
    """The code ended with an exception, or can't be parsed."""

    kind: str
    message: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A request without a result was carried out."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The worker is about to exit."""

    reason: str


@dataclass(frozen=True, slots=True)
class Oversized:
    """A call whose arguments make its message too large. They are left out."""

    call: Called
    size: int


Message = Printed | Called | Oversized | Asked | Named | Waiting | Completed | Raised | Done | GaveUp


def parse(payload: bytes) -> Message:
    """Return the message in a frame of the worker. Raise WireError for anything else."""
    field, content = protobuf.read_first(payload)  # statistics of the session follow
    read = _READERS.get(field)
    if read is None:
        raise WireError("the worker sent something outside its protocol")
    return read(protobuf.read(as_bytes(content)))


def _printed(fields: Fields) -> Printed:
    pieces: list[tuple[bool, str]] = []
    for _, segment in fields:
        parts = dict(protobuf.read(as_bytes(segment)))
        pieces.append((parts.get(1) == 2, as_text(parts.get(2, b""))))
    return Printed(tuple(pieces))


def parse_oversized(begun: bytes, size: int) -> Oversized:
    """Return the call at the start of a message of this size. Its arguments are at the end."""
    fields = [(field, content) for field, content in protobuf.read_begun(begun) if field in (1, 4, 5, 6)]
    return Oversized(_called(fields), size)


def _called(fields: Fields) -> Called:
    parts = dict(fields)
    args = [index for field, content in fields if field == 2 for index in _indices(content)]
    pairs = [dict(protobuf.read(as_bytes(content))) for field, content in fields if field == 3]
    return Called(
        call=as_number(parts.get(4, 0)),
        name=as_text(parts.get(1, b"")),
        receiver=_receiver(parts.get(5)),
        args=tuple(args),
        options=tuple((as_number(pair.get(1, 0)), as_number(pair.get(2, 0))) for pair in pairs),
        table=Table(as_bytes(parts.get(7, b""))),
        awaited=bool(parts.get(6)),
    )


def _indices(content: int | bytes) -> list[int]:
    return [content] if isinstance(content, int) else protobuf.read_packed(content)


def _receiver(uuid: int | bytes | None) -> int | None:
    return None if uuid is None else identity_of(uuid)


def _asked(fields: Fields) -> Asked:
    parts = dict(fields)
    what = next((field for field, _ in fields if 1 < field < 50), 0)
    content = parts.get(what, b"")
    below = protobuf.read(content) if isinstance(content, bytes) and what in READABLE else []
    return Asked(as_number(parts.get(1, 0)), what, below, Table(as_bytes(parts.get(50, b""))))


def _named(fields: Fields) -> Named:
    parts = dict(fields)
    return Named(as_text(parts.get(1, b"")), _receiver(parts.get(2)))


def _waiting(fields: Fields) -> Waiting:
    calls = [index for field, content in fields if field == 1 for index in _indices(content)]
    place = dict(protobuf.read(as_bytes(dict(fields).get(2, b""))))
    return Waiting(tuple(calls), as_text(place.get(1, b"")), as_number(place.get(2, 0)))


def _completed(fields: Fields) -> Completed:
    parts = dict(fields)
    return Completed(as_number(parts.get(1, 0)), Table(as_bytes(parts.get(2, b""))))


def _raised(fields: Fields) -> Raised:
    exception = protobuf.read(as_bytes(dict(fields).get(1, b"")))
    parts = dict(exception)
    places = [_place(protobuf.read(as_bytes(content))) for field, content in exception if field == 3]
    return Raised(as_text(parts.get(1, b"")), as_text(parts.get(2, b"")), tuple(places))


def _place(fields: Fields) -> Place:
    parts = dict(fields)
    start = dict(protobuf.read(as_bytes(parts.get(2, b""))))
    function = as_text(parts[4]) if 4 in parts else None
    return Place(as_text(parts.get(1, b"")), as_number(start.get(1, 0)), as_number(start.get(2, 0)), function)


def _gave_up(fields: Fields) -> GaveUp:
    return GaveUp(as_text(dict(fields).get(1, b""))[:500])


_READERS: dict[int, Any] = {
    1: _printed,
    2: _called,
    3: _asked,
    4: _named,
    5: _waiting,
    6: _completed,
    7: _raised,
    10: lambda fields: Done(),
    11: _gave_up,
}

# The operating system calls, by field.
GETENV, ENVIRON, TODAY, NOW, URANDOM, TIME, SLEEP, ASYNC_SLEEP, IMPORT = 21, 22, 23, 24, 25, 26, 27, 28, 31
READABLE = frozenset({GETENV, NOW, URANDOM, TIME, SLEEP, ASYNC_SLEEP, IMPORT})


def seconds_of(asked: Asked) -> float:
    """Return the duration of a sleep."""
    raw = as_bytes(dict(asked.fields).get(1, bytes(8)))
    if len(raw) != 8:
        raise WireError("the duration of a sleep does not have eight bytes")
    return struct.unpack("<d", raw)[0]
