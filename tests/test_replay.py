"""A run is a function of its events: replayed in another process, it says the same, byte for byte."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from gloveport import Gloveport, MemoryJournal, OptionError

PROGRAMS = {
    "parallel calls": (
        "typescript",
        "const r = await Promise.all([1,2,3,4,5].map((n) => tools.slow(n))); console.log(r); return r",
    ),
    "a race": ("typescript", "return await Promise.race([1,2,3].map((n) => tools.slow(n)))"),
    "timers and dates": (
        "typescript",
        "const a = Date.now(); await new Promise((r) => setTimeout(r, 5)); return [a, new Date(), performance.now()]",
    ),
    "randomness": ("typescript", "return [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(4))]"),
    "errors": (
        "typescript",
        "try { await tools.broken() } catch (e) { console.log(e.stack, e.message) } throw new Error('x')",
    ),
    "un-awaited": ("typescript", "tools.slow(1); tools.slow(2); return Math.random()"),
    "hashing": (
        "typescript",
        "const [a, b] = await Promise.all([1e5, 10].map((n) => crypto.subtle.digest('SHA-256', new Uint8Array(n)))); await tools.slow(1); return [a, b]",
    ),
    "console.time": ("typescript", "console.time('a'); await tools.slow(1); console.timeEnd('a'); return 1"),
    "python, parallel": (
        "python",
        "import asyncio\nr = await asyncio.gather(*(tools.slow(n) for n in range(5)))\nprint(r)\nr",
    ),
    "python, first done": (
        "python",
        "import asyncio\nfor f in asyncio.as_completed([tools.slow(n) for n in range(4)]):\n    print(await f)",
    ),
    "python, time": (
        "python",
        "import time, datetime, asyncio\na = time.time()\nawait asyncio.sleep(0.005)\n[a, datetime.datetime.now(), time.perf_counter()]",
    ),
    "python, randomness": (
        "python",
        "import random, uuid, secrets, os\n[random.random(), str(uuid.uuid4()), secrets.token_hex(4), os.urandom(3)]",
    ),
    "python, order of sets": (
        "python",
        "class A: pass\nprint({'b', 'a', 'c'}, [type(x).__name__ for x in {A(), object(), A()}])\n1",
    ),
    "python, errors": ("python", "try:\n    await tools.broken()\nexcept ToolError as e:\n    print(e)\n1/0"),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_recorded_run_replays_to_the_same_frames(name: str) -> None:
    language, code = PROGRAMS[name]
    chance = random.Random(name)

    async def slow(n: int) -> int:
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        return n

    async def broken() -> None:
        raise ValueError("broken")

    journal = MemoryJournal()
    async with Gloveport(tools=[slow, broken], spare=0, journal=journal) as port:
        outcome = await port.run(code, language=language)  # type: ignore[arg-type]
        recording = journal.find(outcome.run)
        assert recording is not None
        assert len(recording.frames) >= 1
        assert await port.replay(outcome.run) is None


async def test_a_program_that_diverges_is_told_the_first_difference() -> None:
    async def slow(n: int) -> int:
        return n

    journal = MemoryJournal()
    async with Gloveport(tools=[slow], spare=0, journal=journal) as port:
        outcome = await port.run("const x = await tools.slow(1); console.log(x); return x")
        recording = journal.find(outcome.run)
        assert recording is not None
        forged = [event.replace(b"true,1]", b"true,2]") for event in recording.events]
        journal.keep(replace(recording, events=tuple(forged)))
        found: Any = await port.replay(outcome.run)
        assert found is not None
        assert found.at == 1
        assert b'"1"' in (found.recorded or b"")
        assert b'"2"' in (found.replayed or b"")
        assert "frame 1" in str(found)


async def test_a_run_without_a_recording_is_an_error(port: Gloveport) -> None:
    with pytest.raises(OptionError, match="no recording"):
        await port.replay("x")
