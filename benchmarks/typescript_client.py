"""What the TypeScript package costs: `execute` beside the same run from Python, in turn, both recorded.

A function of a TypeScript caller may write, for all that Gloveport knows: each call is on the disk before it leaves. So the bar
is for a Python function that says so too. One that reads, without a record, has rows without a bar.
The package must be built: `make typescript` does that.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.governance import READS, read
from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport, Rule, Rules, tool

BAR = 1.3
REFILL_SECONDS = 0.15  # before each run: the run before has taken a sandbox, and another one starts
PROGRAMS = {"trivial run": "return 1", "three calls": READS}
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "clients" / "typescript" / "dist" / "src" / "index.js"


@tool(name="read", writes=True)
async def read_as_write(n: int) -> int:
    """Return what it is given. It may be a write, for all that Gloveport knows."""
    return n


class Client:
    """A Node process that executes programs, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, folder: Path) -> Client:
        """Start it, with settings and a store of its own."""
        config = folder / "gloveport.toml"
        config.touch()
        own = {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        environment = {**os.environ, **own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        script = Path(__file__).with_name("typescript_client.js")
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                "node", str(script), str(PACKAGE), str(config), stdin=pipe, stdout=pipe, env=environment
            )
        )

    async def seconds(self, code: str) -> float:
        """Execute a program, and return how long that took."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        stdin.write(json.dumps(code).encode() + b"\n")
        answer = json.loads(await stdout.readline())
        assert answer.get("error") is None, answer
        return answer["seconds"]

    async def stop(self) -> None:
        """End it, with its server."""
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()


async def rows(rounds: int) -> list[Row]:
    """Return a row for each program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client = await Client.start(folder)
        try:
            same = Gloveport(tools=[read_as_write], rules=Rules([Rule("*", "allow")]), store=folder / "python.sqlite")
            found: list[Row] = []
            for port, python in ((same, "Python"), (Gloveport(tools=[read]), "Python, reading without a record")):
                async with port:
                    for what, code in PROGRAMS.items():
                        figures = await beside(client, port, code, rounds)
                        bar = f"≤ {BAR} ×" if port is same else ""
                        found.append((f"{what}, from TypeScript beside {python} (p50)", *figures, bar))
            return found
        finally:
            await client.stop()


async def beside(client: Client, port: Gloveport, code: str, rounds: int) -> tuple[str, str, str]:
    """Return the median of both, and their ratio."""

    async def from_typescript() -> float:
        await asyncio.sleep(REFILL_SECONDS)
        return await client.seconds(code)

    async def from_python() -> float:
        await asyncio.sleep(REFILL_SECONDS)
        started = time.perf_counter()
        assert (await port.run(code)).ok
        return time.perf_counter() - started

    ours, python = await interleaved(rounds, from_typescript, from_python)
    ratio = median(ours) / median(python)
    return f"{median(ours) * 1000:.1f} ms", f"{median(python) * 1000:.1f} ms", f"{ratio:.2f} ×"


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 200)):
        print(" | ".join(row))
