"""One tree of Gloveport, driven over a pipe by `benchmarks.against`. It uses only what every version has."""

import asyncio
import json
import os
import sys
import time
from typing import Any

from gloveport import Gloveport


def cpu_seconds() -> float:
    """Return the CPU time of this process and its living descendants, and of those that it has reaped."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(name))
        used[int(name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [os.getpid()], 0.0
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0.0)
        waiting += children.get(pid, [])
    return total


async def echo(value: int) -> int:
    """Return the value."""
    return value


async def run(port: Gloveport, question: dict[str, Any]) -> float:
    began = time.perf_counter()
    outcome = await port.run(question["code"], language=question["language"], engine=question["engine"])
    took = time.perf_counter() - began
    assert outcome.ok, outcome.error
    return took * 1e3


async def sustain(port: Gloveport, question: dict[str, Any]) -> tuple[float, float]:
    done, began, used = 0, time.perf_counter(), cpu_seconds()

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() < began + question["seconds"]:
            await run(port, question)
            done += 1

    await asyncio.gather(*(repeat() for _ in range(question["at_once"])))
    return done / (time.perf_counter() - began), (cpu_seconds() - used) / done * 1e3


async def main() -> None:
    async with Gloveport(tools=[echo]) as port:
        while line := await asyncio.to_thread(sys.stdin.readline):  # the loop turns meanwhile: it starts the next sandboxes
            question = json.loads(line)
            answer = await (run if question["op"] == "run" else sustain)(port, question)
            print(json.dumps(answer), flush=True)


asyncio.run(main())
