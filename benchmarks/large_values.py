"""What large values cost: 5 MB of rows from a tool to a program and back, beside a bare engine that reads and writes them."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport
from gloveport.sandbox.engines.deno.engine import find_deno
from gloveport.types import Language

BAR = 1.5
ROWS = [
    {"id": n, "name": f"customer {n}", "city": "Oslo", "total": n / 7, "paid": n % 3 == 0, "note": None, "tags": ["a", "b"]}
    for n in range(48_000)
]
MEASURED_ENGINES: list[tuple[str, Language, str]] = [
    ("deno", "javascript", "const rows = await tools.load(); rows[0].id = 1; return await tools.save({rows})"),
    ("cpython", "python", "rows = await tools.load()\nrows[0]['id'] = 1\nreturn await tools.save(rows=rows)"),
]
# Each answers lines with lines: what it reads is decoded, changed, encoded and written.
BARE_DENO = """
const decoder = new TextDecoder(), encoder = new TextEncoder(), head = new Uint8Array(4);
function read(into) { for (let at = 0; at < into.length;) { const n = Deno.stdin.readSync(into.subarray(at)); if (n === null) Deno.exit(); at += n; } }
for (;;) {
  read(head);
  const body = new Uint8Array(new DataView(head.buffer).getUint32(0));
  read(body);
  const rows = JSON.parse(decoder.decode(body));
  rows[0].id = 1;
  const out = encoder.encode(JSON.stringify(rows));
  const size = new Uint8Array(4);
  new DataView(size.buffer).setUint32(0, out.length);
  for (const part of [size, out]) for (let at = 0; at < part.length;) at += Deno.stdout.writeSync(part.subarray(at));
}
"""
BARE_PYTHON = """
import json, sys
source, target = sys.stdin.buffer, sys.stdout.buffer
while head := source.read(4):
    rows = json.loads(source.read(int.from_bytes(head)))
    rows[0]["id"] = 1
    out = json.dumps(rows, separators=(",", ":")).encode()
    target.write(len(out).to_bytes(4) + out)
    target.flush()
"""


async def load() -> list[dict[str, Any]]:
    """Return the rows."""
    return ROWS


async def save(rows: list[dict[str, Any]]) -> int:
    """Take rows."""
    return len(rows)


class Bare:
    """A bare engine, which answers what it gets."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, engine: str, folder: Path) -> Bare:
        """Start it."""
        script = folder / f"{engine}.js"
        script.write_text(BARE_DENO if engine == "deno" else BARE_PYTHON)
        command = [find_deno(), "run", "--quiet", str(script)] if engine == "deno" else [sys.executable, str(script)]
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**24))

    async def seconds(self) -> float:
        """Return how long the rows take there and back, encoded and decoded on both sides."""
        source, target = self._process.stdout, self._process.stdin
        assert source
        assert target
        began = time.perf_counter()
        data = json.dumps(ROWS, separators=(",", ":")).encode()
        target.write(len(data).to_bytes(4) + data)
        answer = json.loads(await source.readexactly(int.from_bytes(await source.readexactly(4))))
        assert len(answer) == len(ROWS)
        return time.perf_counter() - began

    async def stop(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()


async def rows(rounds: int) -> list[Row]:
    """Return a row for each engine."""
    found: list[Row] = []
    size = len(json.dumps(ROWS, separators=(",", ":")))
    limits = {"memory_mb": 512, "max_frame_bytes": 16 * 1024 * 1024}
    with tempfile.TemporaryDirectory() as folder:
        async with Gloveport(tools=[load, save], limits=limits) as port:
            for engine, language, code in MEASURED_ENGINES:
                bare = await Bare.start(engine, Path(folder))

                async def ours(language: Language = language, code: str = code) -> float:
                    await asyncio.sleep(0.2)  # the next worker starts meanwhile
                    began = time.perf_counter()
                    outcome = await port.run(code, language=language)
                    assert outcome.value == len(ROWS), outcome.error
                    return time.perf_counter() - began

                samples = await interleaved(rounds, ours, bare.seconds)
                await bare.stop()
                mine, floor = map(median, samples)
                name = f"{size / 1e6:.1f} MB of rows from a tool to a program in {engine} and back, p50"
                told = f"{floor * 1000:.0f} ms (a bare engine)"
                found.append((name, f"{mine * 1000:.0f} ms", told, f"{mine / floor:.2f} ×", f"≤ {BAR} ×"))
    return found


if __name__ == "__main__":
    for line in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 10)):
        print(" | ".join(line))
