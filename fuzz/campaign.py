"""A campaign: one target, so many seconds, from one seed. The same seed makes the same inputs in the same order."""

from __future__ import annotations

import contextlib
import hashlib
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.coverage import Ways
from fuzz.target import CORPUS, BrokenPromise, Target

MOST_GROWTH_KB = 64 * 1024  # above the highest that the process was at, for one input
MOST_GROWTH_IN_ALL_KB = 256 * 1024
FOLLOWED = 0.25  # of the inputs: to follow one takes ten times as long as to try it
LARGEST_KEPT = 4 * 1024  # bytes of an input that is worth a file


@dataclass(frozen=True)
class Find:
    """An input for which a promise was broken, and how."""

    data: bytes
    told: str


@dataclass(frozen=True)
class Report:
    """What a campaign did: how many inputs, how many ways through the code they went, what grew, and what it found."""

    target: str
    seed: int
    inputs: int
    ways: int
    grown_kb: int
    slowest: float
    kept: tuple[bytes, ...]
    find: Find | None

    def __str__(self) -> str:
        said = f"{self.target}: seed {self.seed}, {self.inputs:,} inputs, {self.ways:,} ways, {len(self.kept)} new, "
        said += f"{self.grown_kb / 1024:.0f} MB grown, slowest {self.slowest * 1000:.0f} ms"
        return said if self.find is None else f"{said}\nFOUND with {self.find.data!r}:\n{self.find.told}"


class TooSlow(BaseException):
    """An input took more CPU time than it may; no `except Exception` of the target's stops it."""


def run(target: Target, *, seconds: float, seed: int) -> Report:
    """Try the corpus, then inputs made from it, until the time is up or one is a find."""
    chance, ways = Random(seed), Ways(target.watched)
    known = target.corpus()
    given, first, slowest, inputs, find = len(known), _peak_kb(), 0.0, 0, None
    until = time.monotonic() + seconds
    while find is None and (inputs < given or time.monotonic() < until):
        data = known[inputs] if inputs < given else _made(target, known, chance)
        inputs += 1
        began = time.process_time()
        followed = inputs <= given or chance.random() < FOLLOWED
        find = _tried(target, data, ways if followed else contextlib.nullcontext())
        slowest = max(slowest, time.process_time() - began)
        if find is None and followed and ways.new and inputs > given:
            known.append(data)
        if find is None and _peak_kb() - first > MOST_GROWTH_IN_ALL_KB:
            find = Find(data, f"the process grew by {(_peak_kb() - first) // 1024} MB over {inputs:,} inputs")
    return Report(target.name, seed, inputs, len(ways), _peak_kb() - first, slowest, tuple(known[given:]), find)


def _made(target: Target, known: list[bytes], chance: Random) -> bytes:
    # What was found last is changed more often: it is where the unknown begins.
    place = max(chance.randrange(len(known)), chance.randrange(len(known)))
    data = known[place]
    for _ in range(1 + int(chance.expovariate(0.7))):
        data = target.mutate(data, chance.choice(known), chance)
    return data[: target.most_bytes]


def _tried(target: Target, data: bytes, ways: AbstractContextManager[None]) -> Find | None:
    before = _peak_kb()
    try:
        with _bounded(target.most_seconds), ways:
            target.judge(data)
        grown = _peak_kb() - before
        if grown > MOST_GROWTH_KB:
            raise BrokenPromise(f"{len(data):,} bytes made the process grow by {grown // 1024} MB")
    except TooSlow:
        return Find(data, f"it took more than {target.most_seconds:g} s of CPU time\n{traceback.format_exc(limit=-4)}")
    except Exception:  # noqa: BLE001 - whatever comes out that was not promised is what we look for
        return Find(data, traceback.format_exc(limit=-6))
    return None


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raise TooSlow inside when it takes longer; by CPU time, so that a busy machine says nothing."""

    def ring(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def keep(target: Target, data: bytes, kind: str = "way") -> Path | None:
    """Write an input to the corpus, where it is tried first from now on; None for one that is too long to be kept."""
    if len(data) > LARGEST_KEPT and kind == "way":
        return None
    path = CORPUS / target.name / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
