"""Randomness from the run's seed: a keyed stream, strong enough for keys and the same on every replay."""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import random
import uuid
from typing import Any

try:
    from _sha3 import shake_256  # the interpreter's own: OpenSSL's touches 70 pages more, which a guest has to copy
except ImportError:  # some builds lack it
    from hashlib import shake_256


class Randomness:
    """Bytes derived from the 32-byte seed: each request is a SHAKE-256 output over the seed and a counter."""

    def __init__(self) -> None:
        self._key = bytes(32)
        self._count = 0

    def seed(self, key: bytes) -> None:
        """Restart from a key."""
        self._key, self._count = key, 0

    def bytes(self, size: int, flags: int = 0) -> bytes:
        """Return random bytes, like os.urandom and os.getrandom."""
        size = size.__index__()
        if size < 0:
            raise ValueError("negative argument not allowed")
        self._count += 1
        return shake_256(self._key + self._count.to_bytes(8, "big")).digest(size)

    def integer(self, bits: int = 256) -> int:
        """Return a number of this many bits."""
        return int.from_bytes(self.bytes(bits // 8), "big")


def patch_random(source: Randomness) -> None:
    """Make unseeded generators take their seed from the run, not from the kernel."""
    seed = random.Random.seed

    def seed_from_run(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, source.integer() if a is None else a, version)

    seed_from_run.__name__, seed_from_run.__qualname__ = "seed", "Random.seed"
    random.Random.seed = seed_from_run
    random.seed = random._inst.seed
    uuid._generate_time_safe = uuid._UuidCreate = None  # uuid1 then uses the program's clock


def start_random(source: Randomness, key: bytes) -> None:
    """Seed everything for a run."""
    source.seed(key)
    random._inst.seed(source.integer())
    uuid._last_timestamp, uuid._node = None, source.integer(48) | (1 << 40)  # with the multicast bit: no real network card
