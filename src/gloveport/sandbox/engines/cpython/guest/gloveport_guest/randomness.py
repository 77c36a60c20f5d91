"""Randomness from the run's seed: a keyed stream that is good enough for keys, and the same on every replay."""

# pyright: reportAttributeAccessIssue=false
# It reaches into the standard library where that has no door.

from __future__ import annotations

import random
import uuid
from hashlib import shake_256
from typing import Any


class Randomness:
    """Bytes from the 32 that the host sent: each request is one SHAKE-256 output under the seed and a count."""

    def __init__(self) -> None:
        self._key = bytes(32)
        self._count = 0

    def seed(self, key: bytes) -> None:
        """Start again from a key."""
        self._key, self._count = key, 0

    def bytes(self, size: int, flags: int = 0) -> bytes:
        """As os.urandom and os.getrandom."""
        size = size.__index__()
        if size < 0:
            raise ValueError("negative argument not allowed")
        self._count += 1
        return shake_256(self._key + self._count.to_bytes(8, "big")).digest(size)

    def integer(self, bits: int = 256) -> int:
        """A number of so many bits."""
        return int.from_bytes(self.bytes(bits // 8), "big")


def turn_random(source: Randomness) -> None:
    """Let generators that nobody seeds take their seed from the run's, and not from the kernel."""
    seed = random.Random.seed

    def seed_from_run(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, source.integer() if a is None else a, version)

    seed_from_run.__name__, seed_from_run.__qualname__ = "seed", "Random.seed"
    random.Random.seed = seed_from_run
    random.seed = random._inst.seed
    uuid._generate_time_safe = uuid._UuidCreate = None  # uuid1 in Python, by the clock that the program sees


def start_random(source: Randomness, key: bytes) -> None:
    """Seed everything for a run."""
    source.seed(key)
    random._inst.seed(source.integer())
    uuid._last_timestamp, uuid._node = None, source.integer(48) | (1 << 40)  # the multicast bit: not a real card
