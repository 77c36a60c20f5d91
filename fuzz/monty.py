"""Messages from a compromised Monty worker: the protobuf reader, its tables, and the driver (S6)."""

from __future__ import annotations

import contextlib
import json
import struct
from datetime import UTC, date, datetime
from typing import Any

from fuzz.mutation import mutate_message
from fuzz.target import BrokenPromise, Target
from fuzz.wire import same
from gloveport.errors import ValueCrossingError, WireError
from gloveport.sandbox.engines.monty import messages, protobuf
from gloveport.sandbox.engines.monty.driver import Driver
from gloveport.sandbox.engines.monty.nodes import Table, TooHeavyError, Writer
from gloveport.types import ErrorValue
from gloveport.values import encode

BUDGET = 64 * 1024
START = {
    "code": "1",
    "entry": "body",
    "seed": "",
    "sources": ["local", "github"],
    "has_input": False,
    "max_frame_bytes": BUDGET,
    "max_log_bytes": 1000,
    "env": {"A": "b"},
}
VALUES: tuple[Any, ...] = (
    {"a": [1, -1, 2**70, -(2**70), 0.5, None, True, b"x", "é"], "b": {1: 2, None: 3}},
    [date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 6, UTC), {1, "a"}, ErrorValue("KeyError", "no")],
)


def _table(*values: Any) -> bytes:
    writer = Writer()
    for value in values:
        writer.add(value)
    return writer.table()


def _node(kind: int, content: bytes) -> bytes:
    return protobuf.block(2, protobuf.block(kind, content))


ODD = b"".join(
    (
        _node(18, protobuf.number(1, 12) + protobuf.number(2, 30)),
        _node(20, protobuf.number(1, 3) + protobuf.number(2, 4)),
        _node(29, b"range(0, 10, 2)"),
        _node(23, protobuf.text(1, "Point") + protobuf.number(4, 1)),
        _node(24, protobuf.number(1, 3) + protobuf.block(3, b"")),
        _node(13, protobuf.packed(3, [0, 1])),
        _node(29, b"<coroutine object f>"),
        _node(33, b"1.50"),
    )
)
UUID = protobuf.block(5, protobuf.block(1, bytes(9) + (2).to_bytes(7, "big")))
CALL = protobuf.text(1, "list") + protobuf.packed(2, [0]) + protobuf.number(4, 7) + UUID + protobuf.number(6, 1)
SLEEP = protobuf.number(1, 3) + protobuf.block(28, protobuf.double(1, struct.pack("<d", 0.5)))
CLOCK = protobuf.block(3, protobuf.block(26, protobuf.text(1, "time.time")))
SEEDS = (
    protobuf.block(1, protobuf.block(1, protobuf.number(1, 1) + protobuf.text(2, "printed\n"))),
    protobuf.block(2, CALL + protobuf.block(7, _table(VALUES[0]))),
    protobuf.block(
        2, CALL + protobuf.block(3, protobuf.number(1, 0) + protobuf.number(2, 1)) + protobuf.block(7, _table("k", 1))
    ),
    protobuf.block(3, SLEEP),
    CLOCK,
    protobuf.block(4, protobuf.text(1, "issues") + protobuf.block(2, protobuf.block(1, bytes(15) + b"\2"))),
    protobuf.block(5, protobuf.packed(1, [7]) + protobuf.block(2, protobuf.text(1, "main") + protobuf.number(2, 3))),
    *(protobuf.block(6, protobuf.number(1, 0) + protobuf.block(2, _table(value))) for value in VALUES),
    protobuf.block(6, protobuf.number(1, 4) + protobuf.block(2, ODD)),
    protobuf.block(7, protobuf.block(1, protobuf.text(1, "ValueError") + protobuf.text(2, "no") + protobuf.block(3, b""))),
    protobuf.block(10),
    protobuf.block(11, protobuf.text(1, "because")),
)


def judge(data: bytes) -> None:
    """Read a message or raise WireError; the driver does the same, and sends the host nothing but valid frames."""
    _judge_table(data)
    frames: list[bytes] = []
    driver = Driver(lambda _: None, frames.append)
    driver.take(json.dumps(["start", 1_000_000, START]).encode())
    for number in range(3):
        try:
            driver.hear(messages.parse(data))
            asks_names = bool(frames) and frames[-1].startswith(b'["call_sync",%d,"parameters",' % (number + 1))
            answer = b'["state","k"]' if asks_names else b'{"a":[1,{"$":"date","v":5}]}'
            driver.take(b'["reply",1000001,%d,true,%b]' % (number + 1, answer))
        except WireError as error:
            driver.break_off(error)
            break
    with contextlib.suppress(WireError):
        messages.parse_oversized(data, BUDGET + 1)
    for frame in frames:
        json.loads(frame)


def _judge_table(data: bytes) -> None:
    try:
        table = Table(data)
        value = table.take(0, BUDGET)
        encode(value)
    except (WireError, TooHeavyError, ValueCrossingError):
        return
    writer = Writer()
    try:
        again = Table(_added(writer, value)).take(len(writer.nodes) - 1, 10 * BUDGET)
    except KeyError:
        return  # a type that only leaves the sandbox: a range, a tuple
    if not same(again, value):
        raise BrokenPromise(f"{value!r:.300} came back as {again!r:.300}")


def _added(writer: Writer, value: Any) -> bytes:
    writer.add(value)
    return writer.table()


TARGETS = (Target("monty", judge, mutate_message, (*SEEDS, _table(*VALUES), ODD), ("sandbox/engines/monty",)),)
