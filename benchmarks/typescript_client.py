"""What the TypeScript package costs: `execute` beside the same run from Python, in turn, both recorded.

The server checks the types of every program. So the bar is for a port that does so too; a port as `Gloveport()` makes it does
not, and has rows without a bar. The package must be built: `make typescript` does that.
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
from gloveport import Gloveport

BAR = 1.3
PROGRAMS = {"trivial run": "return 1", "three calls": READS}
ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "clients" / "typescript" / "dist" / "src" / "index.js"


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
            found = []
            for checks in (True, False):
                store = folder / f"python{checks:d}.sqlite"
                async with Gloveport(tools=[read], store=store, check_types=checks) as port:
                    for what, code in PROGRAMS.items():
                        found.append(await beside(client, port, what, code, rounds=rounds, checks=checks))
            return found
        finally:
            await client.stop()


async def beside(client: Client, port: Gloveport, what: str, code: str, *, rounds: int, checks: bool) -> Row:
    async def from_python() -> float:
        started = time.perf_counter()
        assert (await port.run(code)).ok
        return time.perf_counter() - started

    ours, python = await interleaved(rounds, lambda: client.seconds(code), from_python)
    ratio = median(ours) / median(python)
    figures = f"{median(ours) * 1000:.1f} ms", f"{median(python) * 1000:.1f} ms", f"{ratio:.2f} ×"
    python_runs = "Python" if checks else "Python without the type check"
    return f"{what}, from TypeScript beside {python_runs} (p50)", *figures, f"≤ {BAR} ×" if checks else ""


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 200)):
        print(" | ".join(row))
