"""The entrances as targets: mutations scale the recipes of the seeds, and inputs that take longer are mutated further."""

from __future__ import annotations

import json

from fuzz.stall import commands, definitions, frames, people, programs, replies, requests, schemas, sockets
from fuzz.stall.entrance import MIB, Entrance
from fuzz.stall.measurement import MeasuredHost
from fuzz.stall.recipe import mutate_recipe
from fuzz.target import Target

ENTRANCES: tuple[Entrance, ...] = tuple(
    module.ENTRANCE for module in (programs, definitions, schemas, frames, replies, requests, people, sockets, commands)
)


def _target(entrance: Entrance) -> Target:
    host = MeasuredHost(entrance)
    return Target(
        f"stall-{entrance.name}",
        host.judge,
        mutate_recipe(entrance.words),
        tuple(json.dumps(seed).encode() for seed in entrance.seeds.values()),
        (),
        max_bytes=MIB,
        test_seconds=10,
        close=host.close,
        went_further=lambda: host.is_slower,
    )


TARGETS: tuple[Target, ...] = tuple(map(_target, ENTRANCES))
