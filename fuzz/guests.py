"""The value codecs of the preludes, in real jailed engines: values survive the round trip, odd ones are refused (S3, S6).

The inputs are lists of values as they stand on the wire. Each is decoded by the host, given to a program, and must come
back as it was, by every way in and out. Beside that, a program makes values that nobody would, from a seed in the input.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from tests.engines import ENGINES, Engine, Per, said

from fuzz.mutation import mutate_json
from fuzz.target import BrokenPromise, Target
from fuzz.wire import FRAMES, LEAVES, same
from gloveport import Gloveport, bounded_json
from gloveport.errors import ValueCrossingError, WireError
from gloveport.sandbox.engines.monty.nodes import EXCEPTIONS
from gloveport.types import ErrorValue
from gloveport.values import MAX_DEPTH, encode, from_wire

HERE = Path(__file__).parent / "guest"
ECHO = Per(
    "for (let i = 0; i < input.length; i++) await tools.back({ i, given: await tools.give({ i }), input: input[i] });\n"
    "return input",
    "for i in range(len(input)):\n    await tools.back(i=i, given=await tools.give(i=i), input=input[i])\nreturn input",
)
ODD = Per((HERE / "odd.js").read_text(), (HERE / "odd.py").read_text(), monty=None)  # its subset of Python is too small
ODD_VALUES = 60
MAX_VALUES = 100
REFUSALS = (
    " is ",
    " has ",
    "own",
    "call stack",
    " over the limit ",
    " can't ",
    " not JSON",
    "invoke",
    "Cannot",
    "must be",
    "convert",
)
OF_ERRORS = frozenset({"stack", "message", "cause", "name", "errors"})
ERRORS = Per(None, None, monty=EXCEPTIONS)  # the only errors that Monty has, and they hold no more than a message
LIMITS = {"wall_seconds": 60, "max_calls": 10_000}


class Guests:
    """One engine, and the tools that exchange values with its programs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._values: list[Any] = []
        self._back: list[tuple[int, Any]] = []

    @functools.cached_property
    def _port(self) -> Gloveport:
        async def give(i: int) -> Any:
            """Give the program a value."""
            return self._values[i]

        async def back(i: int, given: Any = None, input: Any = None) -> None:
            """Take the value back."""
            self._back += [(i, given), (i, input)]

        async def take(value: Any = None) -> None:
            """Take any value from the program."""
            encode(value)

        return Gloveport(tools=[give, back, take], spare=2)

    def judge(self, data: bytes) -> None:
        """Require that every value comes back, that an odd value crosses or is refused, and that the run completes."""
        self._values, self._back = [value for value in _values(data) if self._survives(value)][:MAX_VALUES], []
        result = self._run(said(ECHO, self._engine), self._values)
        for number, value in [*self._back, *enumerate(result)]:
            if not same(value, self._values[number]):
                raise BrokenPromise(f"{self._values[number]!r:.300} came back as {value!r:.300}")
        if len(self._back) != 2 * len(self._values):
            raise BrokenPromise(f"{len(self._values)} values went in, {len(self._back) // 2} came back")
        program = said(ODD, self._engine)
        if program is not None:
            for told in self._run(program, {"seed": zlib.crc32(data), "count": ODD_VALUES}):
                if not any(sign in told for sign in REFUSALS):
                    raise BrokenPromise(f"a value was refused with {told!r}")

    def _run(self, program: str, given: Any) -> Any:
        outcome = self._port.run_sync(
            program, language=self._engine.language, engine=self._engine.name, input=given, limits=LIMITS
        )
        if outcome.error is not None:
            raise BrokenPromise(f"the run failed: {outcome.error}")
        return outcome.value

    def _survives(self, value: Any) -> bool:
        """Return False for a value that is known to change its meaning on the other side."""
        for part in _parts(value):
            if isinstance(part, ErrorValue) and not _is_kept(part, said(ERRORS, self._engine)):
                return False
            if isinstance(part, dict) and self._engine.language != "python" and any(isinstance(key, bytes) for key in part):
                return False  # JavaScript compares such a key by identity, so the codec refuses it
        return True

    def close(self) -> None:
        """Stop the sandbox processes."""
        if "_port" in self.__dict__:
            self._port.close_sync()
            del self.__dict__["_port"]


def _values(data: bytes) -> Iterator[Any]:
    """Return the values of an input that are data."""
    try:
        bounded_json.check(data, bounded_json.JsonLimits(depth=MAX_DEPTH))
        listed = orjson.loads(data)
    except (bounded_json.JsonLimitError, ValueError):
        return
    for item in listed if isinstance(listed, list) else [listed]:
        try:
            value = from_wire(item)
            encode([value])
        except (WireError, ValueCrossingError):
            continue
        yield value


def _is_kept(error: ErrorValue, names: frozenset[str] | None) -> bool:
    if names is not None:
        return error.name in names and error.cause is None and not error.data
    return OF_ERRORS.isdisjoint(error.data)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    below: Any = ()
    if isinstance(value, dict):
        below = [*value, *value.values()]
    elif isinstance(value, (list, set, frozenset)):
        below = value
    elif isinstance(value, ErrorValue):
        below = [value.cause, dict(value.data)]
    for part in below:
        yield from _parts(part)


SEEDS = (
    json.dumps(list(LEAVES)).encode(),
    json.dumps([frame[-1] for frame in FRAMES]).encode(),
    b'[0,-1,-128,-9007199254740993,1.5,1e300,9007199254740993,"",null,[],{},{"$$":1},{"__proto__":{"a":1},"1":2,"constructor":3},"\\u2028\xc3\xa9\\u0000"]',
)


def _target(engine: Engine) -> Target:
    guests = Guests(engine)
    return Target(
        f"guest-{engine.name}",
        guests.judge,
        mutate_json(LEAVES),
        SEEDS,
        (),
        test_seconds=3.0,
        max_seconds=60,
        close=guests.close,
    )


TARGETS = tuple(map(_target, ENGINES))
