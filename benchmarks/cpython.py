"""The rows for Python: ours beside a bare CPython in the same jail, forked in advance (`floor_cpython.py`)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport
from gloveport.sandbox.cpython import GUEST_FOLDER, PACKAGE, CPythonOptions, cpython_launch
from gloveport.sandbox.launcher import Guest, Launch, Launcher
from gloveport.sandbox.wire import FrameReader, pack

PROGRAM = """
import json
from collections import defaultdict

orders = [{"id": i, "total": (i * 37) % 101, "city": ["Oslo", "Rome", "Kyiv"][i % 3]} for i in range(40)]
by_city = defaultdict(lambda: {"count": 0, "total": 0, "largest": None})
for order in orders:
    entry = by_city[order["city"]]
    entry["count"] += 1
    entry["total"] += order["total"]
    if entry["largest"] is None or order["total"] > entry["largest"]["total"]:
        entry["largest"] = order
ranking = [{"city": city, "mean": entry["total"] / entry["count"], **entry} for city, entry in by_city.items()]
ranking.sort(key=lambda entry: -entry["total"])

def label(entry: dict) -> str:
    return f"{entry['city']:<6} {entry['total']:10.2f} {entry['count']}"

lines = [label(entry) for entry in ranking]
summary = {"best": ranking[0]["city"], "lines": lines, "checksum": len(json.dumps(ranking))}
summary["words"] = [word for line in lines for word in line.split()]
summary
"""
CALLS = "total = 0\nfor i in range(2000):\n    total += await tools.echo(value=i)\ntotal"
PARALLEL = "import asyncio\nlen(await asyncio.gather(*(tools.echo(value=i) for i in range(100))))"
SETTLED_SECONDS = 0.03


async def echo(value: int) -> int:
    """Give back what was given."""
    return value


def floor_launch() -> Launch:
    """The zygote of ours, with the floor in the place of our guest's package."""
    made = cpython_launch(CPythonOptions())
    files = {path: content for path, content in made.files.items() if not path.startswith(f"{GUEST_FOLDER}/{PACKAGE}/")}
    script = Path(__file__).with_name("floor_cpython.py").read_bytes()
    return replace(made, files={**files, f"{GUEST_FOLDER}/{PACKAGE}/__init__.py": script})


class Floor:
    """One bare process that waits for a program."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self._socket = guest.socket
        self._reader = FrameReader(2**24, 2**30)

    @classmethod
    async def ready(cls, launcher: Launcher) -> Floor:
        """A process that has said ready."""
        floor = cls(await launcher.spawn())
        await asyncio.get_running_loop().sock_recv(floor._socket, 4096)
        return floor

    async def run(self, source: str) -> Any:
        """The program's result; each of its calls is echoed."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        buffer = memoryview(bytearray(262144))

        def readable() -> None:
            outgoing = []
            size = self._socket.recv_into(buffer)
            for frame in self._reader.feed(bytes(buffer[:size])):
                message = orjson.loads(frame)
                if message[0] == "call":
                    outgoing.append(pack(orjson.dumps(["reply", message[1], message[3][0]["value"]])))
                elif not done.done():
                    done.set_result(message[1])
            if outgoing:
                self._socket.send(b"".join(outgoing))

        loop.add_reader(self._socket, readable)
        self._socket.send(pack(source.encode()))
        try:
            return await done
        finally:
            loop.remove_reader(self._socket)

    async def end(self) -> None:
        """Kill the process and reap it."""
        self.guest.kill()
        await self.guest.wait()
        self.guest.close()


class Bench:
    """A port and a floor, both warm."""

    def __init__(self, port: Gloveport, launcher: Launcher) -> None:
        self._port = port
        self._launcher = launcher
        self._pool = port._pool(port._kind("python", None, port.limits))

    async def settle(self) -> None:
        """Wait until the pool is full and quiet, so that starting replacements does not disturb a sample."""
        while len(self._pool._ready) < self._pool._size:  # noqa: ASYNC110 - the pool has no event for it, and needs none
            await asyncio.sleep(0.005)
        await asyncio.sleep(SETTLED_SECONDS)

    async def floor(self, source: str) -> tuple[Any, float]:
        """The floor's result for a program, and the seconds that it took."""
        bare = await Floor.ready(self._launcher)
        await self.settle()
        began = time.perf_counter()
        result = await bare.run(source)
        seconds = time.perf_counter() - began
        await bare.end()
        return result, seconds

    async def whole_run(self, rounds: int) -> Row:
        expected = (await self._port.run(PROGRAM, language="python")).value

        async def ours() -> float:
            await self.settle()
            began = time.perf_counter()
            outcome = await self._port.run(PROGRAM, language="python")
            seconds = time.perf_counter() - began
            assert outcome.value == expected, outcome.error
            return seconds

        async def floor() -> float:
            result, seconds = await self.floor(PROGRAM)
            assert result == expected
            return seconds

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        name = "run of 20 lines of Python, p50"
        return name, f"{mine * 1e3:.2f} ms", f"{bare * 1e3:.2f} ms", f"{mine / bare:.2f} ×", "≤ 2.0 ×"

    async def calls(
        self, name: str, source: str, *, count: int, rounds: int, show: Callable[[float], str], bar: str
    ) -> Row:
        async def ours() -> float:
            await self.settle()
            outcome = await self._port.run(source, language="python", limits={"max_calls": 100_000})
            assert outcome.ok, outcome.error
            first = min(call.started for call in outcome.calls)
            last = max(call.started + (call.seconds or 0) for call in outcome.calls)
            return (last - first) / count

        async def floor() -> float:
            timed = f"import time\nbegan = time.perf_counter()\n{source}\ntime.perf_counter() - began"
            return (await self.floor(timed))[0] / count

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        return name, show(mine), show(bare), f"{mine / bare:.2f} ×", bar

    async def memory(self) -> Row:
        """What a process that waits holds of its own."""
        await self.settle()
        bare = [await Floor.ready(self._launcher) for _ in range(4)]
        await asyncio.sleep(SETTLED_SECONDS)
        mine = median([private_mb(worker.guest.pid) for worker in self._pool._ready])
        floor = median([private_mb(each.guest.pid) for each in bare])
        for each in bare:
            await each.end()
        name = "memory of a waiting Python process"
        return name, f"{mine:.1f} MB", f"{floor:.1f} MB", f"{mine - floor:+.1f} MB", "≤ +2 MB"


def in_micros(seconds: float) -> str:
    """One call, as text."""
    return f"{seconds * 1e6:.0f} µs"


def hundred(seconds: float) -> str:
    """A hundred calls, as text."""
    return f"{seconds * 1e5:.2f} ms"


def private_mb(pid: int) -> float:
    """The memory that a process shares with nobody, because it has written to it."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Private_Dirty"].split()[0]) / 1024


async def rows(rounds: int) -> list[Row]:
    """All rows for Python, on any core and the calls also on one."""
    made = await _measure(rounds, "any core", whole=True)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return made + await _measure(rounds, "one core", whole=False)
    finally:
        os.sched_setaffinity(0, cores)


async def _measure(rounds: int, where: str, *, whole: bool) -> list[Row]:
    launcher = Launcher(floor_launch())
    await launcher.start()
    try:
        async with Gloveport(tools=[echo], spare=2) as port:
            await port.run("1", language="python")
            bench = Bench(port, launcher)
            made = [await bench.whole_run(rounds), await bench.memory()] if whole else []
            single, parallel = f"one call from Python, {where}", f"100 parallel calls from Python, {where}"
            made.append(await bench.calls(single, CALLS, count=2000, rounds=rounds // 4, show=in_micros, bar="≤ 2.0 ×"))
            made.append(await bench.calls(parallel, PARALLEL, count=100, rounds=rounds // 2, show=hundred, bar="≤ 5 ms"))
            return made
    finally:
        await launcher.close()
