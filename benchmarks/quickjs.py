"""The rows for QuickJS: ours beside a bare one in the same jail (`floor_quickjs.py`), and beside Deno where many run."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cpython import SETTLED_SECONDS, Floor, echo, hundred, in_micros, private_mb
from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport
from gloveport.sandbox.cpython import GUEST_FOLDER, PACKAGE
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.sandbox.quickjs import QuickJSOptions, quickjs_launch

CALLS = "let sum = 0; for (let i = 0; i < 2000; i++) sum += await tools.echo({value: i}); return sum"
PARALLEL = "return (await Promise.all(Array.from({length: 100}, (_, i) => tools.echo({value: i})))).length"
AT_ONCE = 8
SUSTAINED_RUNS = 200
OURS: dict[str, Any] = {"language": "javascript", "engine": "quickjs"}


def floor_launch() -> Launch:
    """The zygote of ours, with the floor in the place of our guest's package."""
    made = quickjs_launch(QuickJSOptions())
    files = {path: content for path, content in made.files.items() if not path.startswith(f"{GUEST_FOLDER}/{PACKAGE}/")}
    script = Path(__file__).with_name("floor_quickjs.py").read_bytes()
    return replace(made, files={**files, f"{GUEST_FOLDER}/{PACKAGE}/__init__.py": script})


class Bench:
    """A port and a floor, both warm."""

    def __init__(self, port: Gloveport, launcher: Launcher) -> None:
        self._port = port
        self._launcher = launcher
        self._pool = port._pool(port._kind("javascript", "quickjs", port.limits))

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

    async def whole_run(self, program: str, rounds: int) -> Row:
        expected = (await self._port.run(program, **OURS)).value

        async def ours() -> float:
            await self.settle()
            began = time.perf_counter()
            outcome = await self._port.run(program, **OURS)
            seconds = time.perf_counter() - began
            assert outcome.value == expected, outcome.error
            return seconds

        async def floor() -> float:
            result, seconds = await self.floor(program)
            assert result == expected
            return seconds

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        name = "run of 20 lines of JavaScript on quickjs, p50"
        return name, f"{mine * 1e3:.2f} ms", f"{bare * 1e3:.2f} ms", f"{mine / bare:.2f} ×", ""

    async def calls(self, name: str, source: str, *, count: int, rounds: int) -> Row:
        async def ours() -> float:
            await self.settle()
            outcome = await self._port.run(source, limits={"max_calls": 100_000}, **OURS)
            assert outcome.ok, outcome.error
            first = min(call.started for call in outcome.calls)
            last = max(call.started + (call.seconds or 0) for call in outcome.calls)
            return (last - first) / count

        async def floor() -> float:
            timed = f"const t0 = performance.now(); await (async () => {{ {source} }})(); return performance.now() - t0"
            return (await self.floor(timed))[0] / 1e3 / count

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        show, bar = (hundred, "≤ 5 ms") if count == 100 else (in_micros, "")
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
        return "memory of a waiting quickjs process", f"{mine:.1f} MB", f"{floor:.1f} MB", f"{mine - floor:+.1f} MB", ""


async def sustained(engine: str, program: str, runs: int) -> tuple[float, float]:
    """Runs in a second, eight at once, and the processor's milliseconds for each: everything of this process and below."""
    async with Gloveport(tools=[echo], spare=2) as port:
        options: dict[str, Any] = {**OURS, "engine": engine}
        for _ in range(8):
            await port.run(program, **options)
        server = port._pool(port._kind("javascript", engine, port.limits))._launcher._server
        left = iter(range(runs))
        before, began = _cpu_seconds(server.pid), time.perf_counter()

        async def work() -> None:
            for _ in left:
                assert (await port.run(program, **options)).ok

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - began
        return runs / seconds, (_cpu_seconds(server.pid) - before) / runs * 1e3


def _cpu_seconds(server: int) -> float:
    """Processor time of this process, and of a fork server with the guests that it has reaped."""
    own = time.process_time()
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    return own + sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def rows(program: str, rounds: int) -> list[Row]:
    """All rows for QuickJS."""
    launcher = Launcher(floor_launch())
    await launcher.start()
    try:
        async with Gloveport(tools=[echo], spare=2) as port:
            await port.run("1", **OURS)
            bench = Bench(port, launcher)
            made = [
                await bench.whole_run(program, rounds),
                await bench.memory(),
                await bench.calls("one call from quickjs, any core", CALLS, count=2000, rounds=rounds // 4),
                await bench.calls("100 parallel calls from quickjs, any core", PARALLEL, count=100, rounds=rounds // 2),
            ]
    finally:
        await launcher.close()
    small, small_cpu = await sustained("quickjs", program, SUSTAINED_RUNS)
    deno, deno_cpu = await sustained("deno", program, SUSTAINED_RUNS // 2)
    made.append(
        (
            f"runs sustained on quickjs, {AT_ONCE} at once (processor time of a run)",
            f"{small:.0f} a second ({small_cpu:.1f} ms)",
            f"{deno:.0f} a second ({deno_cpu:.1f} ms) on Deno",
            f"{small / deno:.1f} ×",
            "",
        )
    )
    return made
