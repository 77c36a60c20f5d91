"""The clock, the randomness and the environment that a program in Monty sees, all controlled by the host."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from hashlib import shake_256
from typing import Any

from gloveport.sandbox.engines.monty import messages, protobuf
from gloveport.sandbox.engines.monty.messages import Answer, Asked, Failed, Refused, Returned
from gloveport.sandbox.engines.monty.nodes import TooHeavyError, Writer
from gloveport.sandbox.engines.monty.protobuf import as_bytes, as_number, as_text
from gloveport.sandbox.engines.monty.unsupported import no_module

MICROS = 1_000_000
MAX_RANDOM_BYTES = 1024 * 1024
MAX_DEFAULT_BYTES = 64 * 1024


class GuestClock:
    """Answers the operating system calls of a program. The answers are a function of the run's start and its events."""

    def __init__(self) -> None:
        self.now = self._origin = 0
        self._seed = b""
        self._drawn = 0
        self._env: Mapping[str, str] = {}

    def start(self, now: int, seed: bytes, env: Mapping[str, str]) -> None:
        """Set the clock (microseconds since the epoch), the seed and the environment."""
        self.now = self._origin = now
        self._seed, self._env = seed, env

    def advance(self, now: int) -> None:
        """Move the clock to the time of an event. It never goes back."""
        self.now = max(self.now, now)

    def answer(self, asked: Asked) -> tuple[Answer, bytes]:
        """Return the answer to a call that is neither a sleep nor about a file, with its table."""
        parts = dict(asked.fields)
        match asked.what:
            case messages.TIME:
                return _given(self._seconds(as_text(parts.get(1, b""))))
            case messages.NOW:
                return _given(self._datetime(parts.get(1)))
            case messages.TODAY:
                return _given(self._datetime(None).date())
            case messages.URANDOM:
                return self._random(as_number(parts.get(1, 0)))
            case messages.ENVIRON:
                return _given(dict(self._env))
            case messages.GETENV:
                name = as_text(parts.get(1, b""))
                return _given(self._env[name] if name in self._env else _default(asked, as_number(parts.get(2, 0))))
            case messages.IMPORT:
                return Failed("ModuleNotFoundError", no_module(as_text(parts.get(1, b"")))), b""
        return Refused(), b""

    def _read(self) -> int:
        """Read the clock, which advances by a microsecond."""
        self.now += 1
        return self.now - 1

    def _seconds(self, caller: str) -> float:
        since = self._origin if "monotonic" in caller or "perf_counter" in caller else 0
        return (self._read() - since) / MICROS

    def _datetime(self, zone: int | bytes | None) -> datetime:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._read())
        if zone is None:
            return moment.replace(tzinfo=None)
        offset = protobuf.signed(as_number(dict(protobuf.read(as_bytes(zone))).get(1, 0)))
        return moment.astimezone(timezone(timedelta(seconds=offset)))

    def _random(self, size: int) -> tuple[Answer, bytes]:
        if size > MAX_RANDOM_BYTES:
            return Failed("ValueError", f"at most {MAX_RANDOM_BYTES:,} random bytes at once"), b""
        self._drawn += 1
        return _given(shake_256(self._seed + self._drawn.to_bytes(8, "big")).digest(size))


def _given(value: Any) -> tuple[Answer, bytes]:
    writer = Writer()
    return Returned(writer.add(value)), writer.table()


def _default(asked: Asked, index: int) -> Any:
    """Return the default that `os.getenv` was given; None when it is not a plain value."""
    try:
        value = asked.table.take(index, MAX_DEFAULT_BYTES)
    except TooHeavyError:
        return None
    return value if isinstance(value, str | int | float) else None
