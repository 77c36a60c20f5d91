"""Packing the heap of a zygote: what a guest allocates lies together, and its arenas lie side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.integration

# Frees every other object, as an import does, and returns how many pools the objects lie in that are allocated then.
HOLES = """
import json, sys
from gloveport.sandbox.jail import heap
kept = [bytes(size) for size in range(0, 400, 16) for _ in range(4000)]
del kept[::2]
if sys.argv[1] == "pack":
    heap.fill_holes()
new = [bytes(size) for size in range(0, 400, 16) for _ in range(20)]
print(json.dumps(len({id(one) >> 14 for one in new} & {id(one) >> 14 for one in kept})))
"""

LARGE = """
import json, os
from gloveport.sandbox.jail import heap
heap.reserve(8 * 1024 * 1024)
kept = [bytes(400) for _ in range(16_000)]
arenas = sorted({id(one) >> 20 for one in kept})
heap.fill_holes()
heap.use_large_pages(os.open("/proc", os.O_PATH | os.O_DIRECTORY))
longest = run = 0
for before, after in zip(arenas, arenas[1:]):
    run = run + 1 if after == before + 1 else 0
    longest = max(longest, run + 1)
print(json.dumps([longest, sum(map(len, kept))]))
"""


def told_by(script: str, *args: str) -> Any:
    """Return what a fresh interpreter prints for a script."""
    done = subprocess.run([sys.executable, "-c", script, *args], check=True, capture_output=True, timeout=60)
    return json.loads(done.stdout)


def test_new_objects_do_not_lie_between_old_ones() -> None:
    assert told_by(HOLES, "leave") > 20  # one for each size of block
    assert told_by(HOLES, "pack") < 8  # those of what was freed since


def test_reserved_arenas_lie_side_by_side_and_keep_what_is_in_them() -> None:
    longest, size = told_by(LARGE)
    assert longest >= 6
    assert size == 16_000 * 400
