"""A run in Monty is a function of its events: replayed in another process, it says the same, byte for byte."""

import asyncio
import random

import pytest

from gloveport import Gloveport, MemoryJournal

PROGRAMS = {
    "parallel calls": "import asyncio\nr = await asyncio.gather(*[tools.slow(n) for n in range(6)])\nprint(r)\nr",
    "calls one after another": "r = []\nfor n in range(5):\n    r.append(await tools.slow(n))\n    print(n)\nr",
    "the order of returns": """
import asyncio
seen = []
async def one(n):
    seen.append(await tools.slow(n))
    seen.append(await tools.slow(n + 10))
await asyncio.gather(*[one(n) for n in range(5)])
seen
""",
    "time": """
import asyncio, time, datetime
a = time.time()
await asyncio.gather(asyncio.sleep(0.005), tools.slow(1), asyncio.sleep(0.002))
time.sleep(0.003)
[a, time.time(), datetime.datetime.now(), time.perf_counter(), time.monotonic_ns(), str(datetime.date.today())]
""",
    "randomness": "import random, os\n[random.random(), random.Random().random(), os.urandom(3), random.sample(range(99), 9)]",
    "order of sets": "class A: pass\nprint({'b', 'a', 'c'}, [A(), lambda: 1], id(A()), hash('a'))\n{'b', 'a', 'c'}",
    "errors": "try:\n    await tools.broken()\nexcept ToolError as e:\n    print(e, e.code)\n1/0",
    "un-awaited": "tools.slow(1)\ntools.slow(2)\nimport random\nrandom.random()",
    "late": "a = tools.slow(1)\nb = await tools.slow(2)\nimport time\ntime.sleep(0.002)\n[b, await a, time.time()]",
    "look-ups": "t = __getToolInterface('slow')\nprint(t)\nawait tools.search('slow')",
    "polling": "import asyncio\nd = []\nasync def f():\n    d.append(await tools.slow(1))\nasync def p():\n    n = 0\n    while not d:\n        await asyncio.sleep(0)\n        n += 1\n    return n\nawait asyncio.gather(f(), p())",
    "failing calls in parallel": "import asyncio\nawait asyncio.gather(tools.slow(1), tools.broken(), tools.slow(2))",
    "large values": "import random\nr = await tools.given(value=[random.random() for _ in range(30000)])\nr",
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_recorded_run_replays_to_the_same_frames(name: str) -> None:
    chance = random.Random(name)

    async def slow(n: int) -> int:
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        return n

    async def broken() -> None:
        raise ValueError("broken")

    async def given(value: list[float]) -> list[float]:
        return value

    journal = MemoryJournal()
    async with Gloveport(tools=[slow, broken, given], spare=0, journal=journal) as port:
        outcome = await port.run(PROGRAMS[name], language="python", engine="monty")
        recording = journal.find(outcome.run)
        assert recording is not None
        assert recording.engine == "monty"
        assert len(recording.frames) >= 1
        for _ in range(2):
            assert await port.replay(outcome.run) is None


async def test_two_runs_differ_in_what_they_draw() -> None:
    async with Gloveport(spare=0) as port:
        code = "import random\nrandom.random()"
        first, second = [await port.run(code, language="python", engine="monty") for _ in range(2)]
    assert first.value != second.value
