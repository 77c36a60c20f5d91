"""An entrance that does what its input says, to show what a measurement sees."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fuzz.stall.entrance import Attack, Document, Entrance, Refusal, Take


def spin(seconds: float) -> None:
    """Use up CPU time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Yield the attack that an input describes."""
    dishonest: list[str] = []

    async def take(document: Document) -> Attack:
        way = document["do"]
        refusal = Refusal(document["code"], document["message"]) if way == "refuse" else None

        async def attack() -> Refusal | None:
            match way:
                case "spin":
                    spin(document["seconds"])
                case "spin in slices":
                    for _ in range(int(document["seconds"] / 0.005)):
                        spin(0.005)
                        await asyncio.sleep(0)
                case "spin in a thread":
                    await asyncio.to_thread(spin, document["seconds"])
                case "hold the lock in a thread":
                    await asyncio.to_thread(pow, 3, document["exponent"])
                case "raise":
                    raise ArithmeticError("not declared")
                case "die":
                    os._exit(1)
                case "spoil":
                    dishonest.append("spoilt")
            return Refusal("busy", "spoilt") if dishonest else refusal

        return attack

    yield take


ENTRANCE = Entrance("obedient", __name__, opened, {}, {"do": "nothing"}, ("x",), 1000)
