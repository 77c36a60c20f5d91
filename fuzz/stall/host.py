"""The host under attack, in a process of its own: `python -m fuzz.stall.host MODULE` takes inputs and writes verdicts."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import sys
import tempfile
import threading
import traceback
from typing import Any

from fuzz.stall.entrance import Elsewhere, Entrance, Refusal, Take, use_empty_folders
from fuzz.stall.heartbeat import Heartbeat
from fuzz.target import BrokenPromise
from gloveport.catalog.semantic import load_model
from gloveport.errors import GloveportError

WARM_UP_ROUNDS = 5
MAX_STACK_CHARS = 6000


async def serve(entrance: Entrance, heartbeat: Heartbeat, requests: int, verdicts: int) -> None:
    """Give each input that comes in to the entrance, and write how long the loop stood still meanwhile."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with open(requests, "rb") as file:
            for line in file:
                loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    async with entrance.open() as take:
        for _ in range(WARM_UP_ROUNDS):
            await _be_honest(entrance, take)
        gc.collect()
        gc.freeze()
        os.write(verdicts, b"{}\n")
        threading.Thread(target=read, daemon=True).start()
        while line := await lines.get():
            verdict = await _judge(entrance, take, heartbeat, json.loads(line))
            os.write(verdicts, json.dumps(verdict).encode() + b"\n")


async def _judge(entrance: Entrance, take: Take, heartbeat: Heartbeat, document: Any) -> dict[str, Any]:
    try:
        attack = await take(entrance.prepared(document))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return {"seconds": 0.0}  # a mutation that is no input of this entrance any more
    gc.collect()  # of what the expansion left
    problem, refusal = "", None
    with heartbeat.measure():
        await asyncio.sleep(0)
        try:
            refusal = await attack()
        except GloveportError as error:
            refusal = Refusal.of(error)
        except Exception:  # noqa: BLE001 - any other error is a defect
            problem = traceback.format_exc(limit=-6)
        await asyncio.sleep(0.01)
    seconds, stacks = heartbeat.longest, heartbeat.stacks()
    if isinstance(refusal, Elsewhere):
        seconds, stacks, refusal = refusal.seconds, refusal.stacks, refusal.refusal
    try:
        if refusal is not None:
            refusal.check()
        await _be_honest(entrance, take)
    except BrokenPromise as broken:
        problem = problem or str(broken)
    shown = None if refusal is None else [refusal.code[:60], refusal.message[:300]]
    return {"seconds": seconds, "refusal": shown, "problem": problem, "stacks": stacks[:MAX_STACK_CHARS]}


async def _be_honest(entrance: Entrance, take: Take) -> None:
    attack = await take(entrance.prepared(entrance.honest))
    refusal = await attack()
    if isinstance(refusal, Elsewhere):
        refusal = refusal.refusal
    if refusal is not None and refusal.code != "time-limit":  # of the wall clock, on a busy machine
        raise BrokenPromise(f"an honest input was refused: {refusal}")


def main() -> None:
    """Serve the entrance of a module until standard input ends."""
    entrance = importlib.import_module(sys.argv[1]).ENTRANCE
    requests, verdicts = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # what the host prints is not a verdict
    logging.disable(logging.CRITICAL)
    heartbeat = Heartbeat()
    load_model()  # it takes 0.1 s, once for a process, whatever its input is

    class Policy(asyncio.DefaultEventLoopPolicy):
        """Makes loops that beat, also for a command that makes its own."""

        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            loop = super().new_event_loop()
            heartbeat.attach(loop)
            return loop

    asyncio.set_event_loop_policy(Policy())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        use_empty_folders()
        asyncio.run(serve(entrance, heartbeat, requests, verdicts))


if __name__ == "__main__":
    main()
