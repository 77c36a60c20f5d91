"""Frames from a compromised worker, and round trips through both value codecs of Python (S5, S6)."""

from __future__ import annotations

import json
import math
import sys
from datetime import datetime
from typing import Any

import orjson

from fuzz.mutation import mutate_json
from fuzz.target import SOURCE, BrokenPromise, Target
from gloveport import bounded_json
from gloveport.errors import ValueCrossingError, WireError
from gloveport.sandbox import wire
from gloveport.types import ErrorValue
from gloveport.values import MAX_DEPTH, encode, from_wire, to_json

MAX_FRAME_BYTES, MAX_TOTAL_BYTES = 64 * 1024, 256 * 1024
TAGS = ("undefined", "number", "bigint", "date", "bytes", "map", "set", "error", "nothing")
CAUSED = {"$": "error", "v": {"name": "A", "message": "b", "cause": {"$": "error", "v": {"name": "C", "message": ""}}}}
LEAVES: tuple[Any, ...] = (
    *({"$": tag, "v": content} for tag in TAGS for content in ("1", "-0", 5, [[1, 2]], [1], {"name": "E", "message": "m"})),
    *({"$": "number", "v": value} for value in ("NaN", "Infinity", "-Infinity", "1e400")),
    *({"$": "date", "v": when} for when in (0, -62135596800000, 253402300799999, 1e15, 0.5)),
    CAUSED,
    {"$$": 1, "$": "map", "v": [[{"$": "bytes", "v": "AA=="}, None]]},
    *("call", "call_sync", "timer", "log", "emit", "done", "value", "error", "v", "$", "name", "message", "cause", "data"),
)
FRAMES: tuple[Any, ...] = (
    ["ready", 1, "deno 2.9.0"],
    ["call", 1, "github.issues.list", [{"state": "open"}]],
    ["call_sync", 2, "names", ["github"]],
    ["timer", 1_700_000_000_000_000],
    ["timer", None],
    ["log", "info", "a line"],
    ["emit", {"rows": [1, 2.5, None, True], "at": {"$": "date", "v": 0}}],
    [
        "done",
        "value",
        {"$": "number", "v": "-0"},
        {"pending": [1], "unhandled": [{"type": "E", "message": "m"}], "dropped": 3},
    ],
    ["done", "error", {"code": "program-failed", "type": "E", "message": "m", "line": 1, "column": 2}, {}],
    ["emit", {"$": "set", "v": [1, "a", {"$": "bigint", "v": "9007199254740993"}, {"$": "number", "v": "NaN"}]}],
    [
        "emit",
        {"$": "map", "v": [[1, {"$": "undefined"}], [{"$": "date", "v": 5}, {"$$dollar": {"$": "bytes", "v": "AQ=="}}]]},
    ],
    ["emit", CAUSED],
)
SEEDS = tuple(json.dumps(frame).encode() for frame in FRAMES)


def judge_frames(data: bytes) -> None:
    """Require frames or a WireError, however the stream is cut, and values that survive a round trip."""
    whole, cut = _received([wire.pack(data)]), _received(_pieces(wire.pack(data)))
    if not same(whole, cut):
        raise BrokenPromise(f"in one piece it decodes to {whole!r:.200}, in several to {cut!r:.200}")
    _received([data])  # the input as raw bytes, with whatever lengths it claims
    if isinstance(whole, list):
        _there_and_back(whole)


def _pieces(data: bytes) -> list[bytes]:
    """Cut the bytes: small pieces where the first frames begin, then the rest."""
    step = 1 + sum(data[:64]) % 7
    head = [data[at : at + step] for at in range(0, step * 60, step)]
    return [*head, data[step * 60 :]]


def _received(pieces: list[bytes]) -> list[Any] | str:
    reader = wire.FrameReader(MAX_FRAME_BYTES, MAX_TOTAL_BYTES)
    try:
        return [[from_wire(part) for part in wire.parse(frame)] for piece in pieces for frame in reader.feed(piece)]
    except WireError as error:
        return error.code


def _there_and_back(values: list[Any]) -> None:
    """Require that decoded values encode and decode to the same again, or are refused with a path."""
    to_json(values)
    try:
        sent = encode(values)
    except ValueCrossingError:
        return
    again = from_wire(orjson.loads(sent))
    if not same(again, values):
        raise BrokenPromise(f"{values!r:.300} came back as {again!r:.300}")


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; NaN equals itself."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        ordered = [sorted(some.items(), key=_order) for some in (one, other)]  # JavaScript puts numeric keys first
        return len(one) == len(other) and all(map(same, *ordered))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (set, frozenset)) and isinstance(other, (set, frozenset)):
        members = [{repr(member): member for member in some} for some in (one, other)]  # NaN is equal to itself here
        return same(*members)
    if isinstance(one, ErrorValue) and isinstance(other, ErrorValue):
        parts = ((one.name, other.name), (one.message, other.message), (one.cause, other.cause), (one.data, other.data))
        return all(same(mine, yours) for mine, yours in parts)
    if isinstance(one, datetime) and isinstance(other, datetime):
        return abs((one - other).total_seconds()) < 0.001  # dates cross with millisecond precision
    return bool(one == other)


def _order(pair: tuple[Any, Any]) -> str:
    key = pair[0]
    return key.isoformat(timespec="milliseconds") if isinstance(key, datetime) else repr(key)


def judge_python_codec(data: bytes) -> None:
    """Require that the guest's codec decodes what the host encodes to the same value, and the other way round."""
    decode, send = _guest_codec()
    try:
        bounded_json.check(data, bounded_json.JsonLimits(depth=MAX_DEPTH))
    except (bounded_json.JsonLimitError, ValueError):
        return
    try:
        given = from_wire(orjson.loads(data))
        sent = encode(given)
    except (WireError, ValueCrossingError, orjson.JSONDecodeError):
        return
    back = from_wire(orjson.loads(send(decode(orjson.loads(sent)), "result")))
    if not same(back, given):
        raise BrokenPromise(f"{given!r:.300} came back as {back!r:.300}")


def _guest_codec() -> Any:
    folder = str(SOURCE / "sandbox" / "engines" / "cpython" / "guest")
    if folder not in sys.path:
        sys.path.append(folder)
    from gloveport_guest import values  # type: ignore[import-not-found]

    return values.decode, values.encode


mutate = mutate_json(LEAVES)
TARGETS = (
    Target("wire", judge_frames, mutate, SEEDS, ("sandbox/wire.py", "bounded_json.py", "values.py")),
    Target(
        "python-codec",
        judge_python_codec,
        mutate,
        tuple(json.dumps(frame[-1]).encode() for frame in FRAMES),
        ("sandbox/engines/cpython/guest/gloveport_guest/values.py", "values.py"),
    ),
)
