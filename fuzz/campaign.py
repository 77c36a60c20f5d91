"""A campaign fuzzes one target for some seconds from a seed. The same seed makes the same inputs in the same order."""

from __future__ import annotations

import contextlib
import hashlib
import math
import resource
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzz.coverage import Ways
from fuzz.target import CORPUS, BrokenPromise, Target

MAX_GROWTH_KB = 64 * 1024  # of the peak memory of the process, for one input
MAX_TOTAL_GROWTH_KB = 256 * 1024
FOLLOWED_SHARE = 0.25  # of the inputs: following one takes ten times as long as trying it
MAX_KEPT_BYTES = 4 * 1024  # of an input in the corpus


@dataclass(frozen=True)
class Find:
    """An input that breaks the promise of a target, and how."""

    data: bytes
    problem: str


@dataclass(frozen=True)
class Report:
    """The result of a campaign: inputs tried, paths through the code, memory growth, new inputs, and the find."""

    target: str
    seed: int
    inputs: int
    ways: int
    grown_kb: int
    slowest: float
    kept: tuple[bytes, ...]
    find: Find | None

    def __str__(self) -> str:
        text = f"{self.target}: seed {self.seed}, {self.inputs:,} inputs, {self.ways:,} paths, {len(self.kept)} new, "
        text += f"{self.grown_kb / 1024:.0f} MB grown, slowest {self.slowest * 1000:.0f} ms"
        return text if self.find is None else f"{text}\nFOUND with {self.find.data!r}:\n{self.find.problem}"


class TooSlow(BaseException):
    """An input took too much CPU time. Not an Exception, so that the target can't swallow it."""


def run(target: Target, *, seconds: float, seed: int, replayed: Sequence[bytes] | None = None) -> Report:
    """Try the corpus, or only `replayed` of it, then mutations of the corpus for some seconds. End at the first find."""
    chance, ways = Random(seed), Ways(target.watched)
    known = target.corpus()
    replayed = known.copy() if replayed is None else replayed
    given, first, slowest, inputs, find = len(replayed), _peak_kb(), 0.0, 0, None
    until = math.inf
    while find is None:
        if inputs == given:
            until = time.monotonic() + seconds
        if time.monotonic() >= until:
            break
        data = replayed[inputs] if inputs < given else _made(target, known, chance)
        inputs += 1
        began = time.process_time()
        followed = inputs <= given or chance.random() < FOLLOWED_SHARE
        find = _tried(target, data, ways if followed else contextlib.nullcontext())
        slowest = max(slowest, time.process_time() - began)
        if find is None and inputs > given and ((followed and ways.new) or target.went_further()):
            known.append(data)
        if find is None and _peak_kb() - first > MAX_TOTAL_GROWTH_KB:
            find = Find(data, f"the process grew by {(_peak_kb() - first) // 1024} MB over {inputs:,} inputs")
    return Report(
        target.name, seed, inputs, len(ways), _peak_kb() - first, slowest, tuple(known[len(target.corpus()) :]), find
    )


def _made(target: Target, known: list[bytes], chance: Random) -> bytes:
    # The newest inputs are mutated more often: they reached the least explored code.
    place = max(chance.randrange(len(known)), chance.randrange(len(known)))
    data = known[place]
    for _ in range(1 + int(chance.expovariate(0.7))):
        data = target.mutate(data, chance.choice(known), chance)
    return data[: target.max_bytes]


def _tried(target: Target, data: bytes, ways: AbstractContextManager[None]) -> Find | None:
    before = _peak_kb()
    try:
        with _bounded(target.max_seconds), ways:
            target.judge(data)
        grown = _peak_kb() - before
        if grown > MAX_GROWTH_KB:
            raise BrokenPromise(f"{len(data):,} bytes made the process grow by {grown // 1024} MB")
    except TooSlow:
        return Find(data, f"it took more than {target.max_seconds:g} s of CPU time\n{traceback.format_exc(limit=-4)}")
    except Exception:  # noqa: BLE001 - any exception that the promise does not allow is a find
        return Find(data, traceback.format_exc(limit=-6))
    return None


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the block after so much CPU time. Wall time would fail on a busy machine."""

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
    """Write an input to the corpus and return its path, or None if it is too long to keep."""
    if len(data) > MAX_KEPT_BYTES and kind == "way":
        return None
    path = CORPUS / target.name / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
