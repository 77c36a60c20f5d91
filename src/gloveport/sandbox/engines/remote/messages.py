"""What a caller and its sandbox host say to each other. Texts are JSON arrays; bytes belong to the wire of the run.

    caller → host   ["probe", version, engine, allow_eval, allow_wasm] · ["take", version, engine, allow_eval, allow_wasm]
                    ["limit", wall_seconds, cpu_seconds, memory_mb] · ["pause"] · ["go-on"] · bytes for the guest
    host → caller   ["report", strength, [[layer, in_force, detail, fix], …]]
                    ["ready", engine, idle_mb, wall_seconds, cpu_seconds, memory_mb] · ["refused", code, message, hint]
                    ["exit", code, signal, cpu_seconds, max_rss_kb, exceeded, stderr]
                    bytes: what the run has used so far (see `with_usage`), then what the guest sent

Neither side trusts the other: reading is total, and yields a message of the expected form or a `WireError`.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import orjson

from gloveport.errors import OptionError, WireError
from gloveport.sandbox import wire
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.guest import Exit
from gloveport.sandbox.jail.strength import STRENGTH_MEANING, JailReport, Layer
from gloveport.sandbox.watchdog import ExceededLimit
from gloveport.types import Limits

VERSION = 1
MAX_TEXT_BYTES = 64 * 1024
MAX_PIECE_BYTES = 256 * 1024  # of the wire in one message
MAX_MESSAGE_BYTES = MAX_PIECE_BYTES + 1024
MAX_SHOWN_CHARS = 1000  # of a text that the other side wrote
MAX_STDERR_CHARS = 16 * 1024
MAX_LAYERS = 32
MAX_IDLE_MB = 4096.0
MAX_USED = 2**40  # of any unit
_USAGE = struct.Struct(">QI")


class Connection(Protocol):
    """A WebSocket: whole messages in both directions. All methods raise ConnectionError once it is closed or broken."""

    async def send(self, message: bytes | str) -> None:
        """Send a message; wait while the other side does not read."""
        ...

    async def receive(self) -> bytes | str:
        """Return the next message, of at most MAX_MESSAGE_BYTES."""
        ...

    async def close(self) -> None:
        """Close it. This may be called twice."""
        ...


Connect = Callable[[], Awaitable[Connection]]
"""Opens a connection to the sandbox host; raises SandboxError."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker at the sandbox host that waits for a program. `limits` are the highest that it grants."""

    engine: str
    idle_mb: float
    limits: Limits


@dataclass(frozen=True, slots=True)
class Ended:
    """How the worker ended, as the sandbox host reports it."""

    exit: Exit
    exceeded: ExceededLimit | None
    stderr: str


def text(*parts: Any) -> str:
    """Return a message."""
    return orjson.dumps(parts).decode()


def parse(message: bytes | str) -> list[Any]:
    """Return the parts of a text message; WireError for anything else."""
    if isinstance(message, bytes) or len(message) > MAX_TEXT_BYTES:
        raise WireError("a message about the sandbox was expected")
    return wire.parse(message.encode("utf-8", "replace"))


def request(kind: str, options: ProcessOptions) -> str:
    """Return the first message of a caller."""
    return text(kind, VERSION, options.engine, options.allow_eval, options.allow_wasm)


def ready(engine: str, idle_mb: float, limits: Limits) -> str:
    """Return the message that a worker waits."""
    return text("ready", engine, idle_mb, limits.wall_seconds, limits.cpu_seconds, limits.memory_mb)


def read_ready(parts: Sequence[Any]) -> Ready:
    """Return what a sandbox host offers."""
    match parts:
        case ["ready", str(engine), idle_mb, wall, cpu, memory] if _is_amount(idle_mb):
            return Ready(engine[:100], min(float(idle_mb), MAX_IDLE_MB), _limits(wall, cpu, memory))
    raise WireError("the sandbox host did not offer a sandbox")


def limit(limits: Limits) -> str:
    """Return the message that a run with these limits begins."""
    return text("limit", limits.wall_seconds, limits.cpu_seconds, limits.memory_mb)


def read_limit(parts: Sequence[Any]) -> Limits:
    """Return the limits of a caller's run."""
    match parts:
        case ["limit", wall, cpu, memory]:
            return _limits(wall, cpu, memory)
    raise WireError("the limits of the run must come first")


def _limits(wall_seconds: Any, cpu_seconds: Any, memory_mb: Any) -> Limits:
    try:
        return Limits(wall_seconds=wall_seconds, cpu_seconds=cpu_seconds, memory_mb=memory_mb)
    except OptionError as error:
        raise WireError(error.message) from None


def lower(one: Limits, other: Limits) -> Limits:
    """Return the lower of two limits, for each of those that a sandbox host enforces."""
    return one.with_(
        wall_seconds=min(one.wall_seconds, other.wall_seconds),
        cpu_seconds=min(one.cpu_seconds, other.cpu_seconds),
        memory_mb=min(one.memory_mb, other.memory_mb),
    )


def report(found: JailReport) -> str:
    """Return the message about the jail at a sandbox host."""
    return text("report", found.strength, [[layer.name, layer.in_force, layer.detail, layer.fix] for layer in found.layers])


def read_report(parts: Sequence[Any]) -> JailReport:
    """Return the jail that a sandbox host claims to have."""
    match parts:
        case ["report", str(strength), list(layers)] if strength in STRENGTH_MEANING and len(layers) <= MAX_LAYERS:
            return JailReport(strength, tuple(map(_layer, layers)))
    raise WireError("the sandbox host did not report on its jail")


def _layer(parts: Any) -> Layer:
    match parts:
        case [str(name), bool(in_force), str(detail), None | str() as fix]:
            return Layer(name[:100], in_force, detail[:MAX_SHOWN_CHARS], fix and fix[:MAX_SHOWN_CHARS])
    raise WireError("the sandbox host did not report on its jail")


def ended(exit_: Exit, exceeded: ExceededLimit | None, stderr: str) -> str:
    """Return the message that a worker has ended."""
    about = exit_.code, exit_.signal, exit_.cpu_seconds, exit_.max_rss_kb
    return text("exit", *about, exceeded, stderr.encode("utf-8", "replace").decode()[:MAX_STDERR_CHARS])


def read_ended(parts: Sequence[Any], limits: Limits, idle_mb: float) -> Ended:
    """Return how a worker ended. What it has used is a claim, and cut to what the limits allow."""
    match parts:
        case ["exit", None | int() as code, None | int() as signal, cpu, int(rss), exceeded, str(stderr)] if (
            _is_amount(cpu) and _is_amount(rss) and exceeded in (None, *get_args(ExceededLimit))
        ):
            cpu_seconds, peak_mb = bounded(float(cpu), rss / 1024, limits, idle_mb)
            return Ended(Exit(code, signal, cpu_seconds, int(peak_mb * 1024)), exceeded, stderr[:MAX_STDERR_CHARS])
    raise WireError("the sandbox host sent a message that is not one of the protocol")


def with_usage(data: bytes, cpu_seconds: float, peak_mb: float) -> bytes:
    """Return bytes of the wire behind what the run has used: CPU time in microseconds, peak memory in KiB."""
    return _USAGE.pack(int(cpu_seconds * 1e6), min(int(peak_mb * 1024), 2**32 - 1)) + data


def split_usage(message: bytes, limits: Limits, idle_mb: float) -> tuple[bytes, float, float]:
    """Return bytes of the wire, and the CPU seconds and the peak memory that the sandbox host claims."""
    if len(message) <= _USAGE.size or len(message) > MAX_MESSAGE_BYTES:
        raise WireError("the sandbox host sent a message of a wrong size")
    cpu_microseconds, peak_kb = _USAGE.unpack_from(message)
    return message[_USAGE.size :], *bounded(cpu_microseconds / 1e6, peak_kb / 1024, limits, idle_mb)


def bounded(cpu_seconds: float, peak_mb: float, limits: Limits, idle_mb: float) -> tuple[float, float]:
    """Return a claim of usage within what a run may use: more than its limits would have ended it."""
    return min(cpu_seconds, limits.cpu_seconds + 2), min(peak_mb, idle_mb + limits.memory_mb * 1.1)


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_USED
