"""The rows for QuickJS, beside a bare one that is forked in advance in the same jail (`floor_quickjs.py`)."""

from __future__ import annotations

from benchmarks.forked import Bench, Kind, echo, with_floor
from benchmarks.sampling import Row
from gloveport import Gloveport
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.quickjs.engine import ENGINE
from gloveport.sandbox.launcher import Launch, Launcher

CALLS = "let sum = 0; for (let i = 0; i < 2000; i++) sum += await tools.echo({value: i}); return sum"
PARALLEL = "return (await Promise.all(Array.from({length: 100}, (_, i) => tools.echo({value: i})))).length"
KIND = Kind(
    "quickjs",
    "javascript",
    "quickjs",
    lambda source: f"const t0 = performance.now(); await (async () => {{ {source} }})(); return performance.now() - t0",
    milliseconds=True,
)


def floor_launch() -> Launch:
    """Return the launch of the floor."""
    return with_floor(ENGINE.launch(ProcessOptions("quickjs")), "floor_quickjs.py")


async def rows(program: str, rounds: int) -> list[Row]:
    """Return the rows for QuickJS."""
    launcher = Launcher(floor_launch())
    await launcher.start()
    try:
        async with Gloveport(tools=[echo], spare=2) as port:
            bench = Bench(KIND, port, launcher)
            whole = await bench.whole_run("run of 20 lines of JavaScript on quickjs, p50", program, rounds, "")
            return [whole, await bench.memory(""), *await bench.calls("any core", CALLS, PARALLEL, rounds)]
    finally:
        await launcher.close()
