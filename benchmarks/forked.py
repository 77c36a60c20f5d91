"""The rows of a forked engine, beside a bare one that is forked in the same jail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.floor import serve
from benchmarks.programs import unread
from benchmarks.sampling import Row, interleaved, median
from gloveport import Gloveport
from gloveport.sandbox.engines.zygote_launch import GUEST_FOLDER, PACKAGE
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.types import Language

SETTLED_SECONDS = 0.03


async def echo(value: int) -> int:
    """Return the value."""
    return value


def with_floor(made: Launch, script: str) -> Launch:
    """Return the launch of our zygote with a floor in place of our guest package."""
    files = {path: content for path, content in made.files.items() if not path.startswith(f"{GUEST_FOLDER}/{PACKAGE}/")}
    floor = Path(__file__).with_name(script).read_bytes()
    return replace(made, files={**files, f"{GUEST_FOLDER}/{PACKAGE}/__init__.py": floor})


class Floor:
    """A bare process that waits for a program."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest

    @classmethod
    async def ready(cls, launcher: Launcher) -> Floor:
        """Return a process that has sent its ready message."""
        floor = cls(await launcher.spawn())
        await asyncio.get_running_loop().sock_recv(floor.guest.socket, 4096)
        return floor

    async def run(self, source: str) -> Any:
        """Run a program, echo its calls, and return its result."""
        return await serve(self.guest.socket, source.encode())

    async def end(self) -> None:
        """Kill and reap the process."""
        self.guest.kill()
        await self.guest.wait()
        self.guest.close()


@dataclass(frozen=True, slots=True)
class Kind:
    """An engine, its name in the table, and how its floor reports the seconds of a program."""

    engine: str
    language: Language
    name: str
    timed: Callable[[str], str]
    milliseconds: bool = False


class Bench:
    """A port and a floor, both warmed up."""

    def __init__(self, kind: Kind, port: Gloveport, launcher: Launcher) -> None:
        self._kind = kind
        self._port = port
        self._launcher = launcher
        self._pool = port._pools.find(port._pools.options(kind.language, kind.engine, port.limits))
        self._how: dict[str, Any] = {"language": kind.language, "engine": kind.engine}

    async def settle(self) -> None:
        """Wait until the pool is full and quiet, so that starting replacements does not disturb a sample."""
        while len(self._pool._ready) < self._pool._size:
            self._pool.refill()
            await asyncio.sleep(0.005)
        await asyncio.sleep(SETTLED_SECONDS)

    async def floor(self, source: str) -> tuple[Any, float]:
        """Run a program in the floor and return its result and the seconds."""
        bare = await Floor.ready(self._launcher)
        await self.settle()
        began = time.perf_counter()
        result = await bare.run(source)
        seconds = time.perf_counter() - began
        await bare.end()
        return result, seconds

    async def whole_run(self, name: str, program: str, rounds: int, bar: str) -> Row:
        """Return the row of a program without calls, whose text is new in each run."""
        expected = (await self._port.run(program, **self._how)).value

        async def ours() -> float:
            await self.settle()
            text = unread(program, self._kind.language)
            began = time.perf_counter()
            outcome = await self._port.run(text, **self._how)
            seconds = time.perf_counter() - began
            assert outcome.value == expected, outcome.error
            return seconds

        async def floor() -> float:
            result, seconds = await self.floor(program)
            assert result == expected
            return seconds

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        return name, f"{mine * 1e3:.2f} ms", f"{bare * 1e3:.2f} ms", f"{mine / bare:.2f} ×", bar

    async def calls(self, where: str, one: str, hundred: str, rounds: int) -> list[Row]:
        """Return the rows of sequential calls and of a hundred parallel calls."""
        single = f"one call from {self._kind.name}, {where}"
        mine, bare = await self._each(one, count=2000, rounds=rounds // 4)
        rows = [(single, f"{mine * 1e6:.0f} µs", f"{bare * 1e6:.0f} µs", f"{mine / bare:.2f} ×", "")]
        mine, bare = await self._each(hundred, count=100, rounds=rounds // 2)
        parallel = f"100 parallel calls from {self._kind.name}, {where}"
        rows.append((parallel, f"{mine * 1e5:.2f} ms", f"{bare * 1e5:.2f} ms", f"{mine / bare:.2f} ×", "≤ 5 ms"))
        return rows

    async def _each(self, source: str, *, count: int, rounds: int) -> tuple[float, float]:
        """Return the seconds per call of a program: ours and the floor's."""

        async def ours() -> float:
            await self.settle()
            outcome = await self._port.run(source, limits={"max_calls": 100_000}, **self._how)
            assert outcome.ok, outcome.error
            first = min(call.started for call in outcome.calls)
            last = max(call.started + (call.seconds or 0) for call in outcome.calls)
            return (last - first) / count

        async def floor() -> float:
            told = (await self.floor(self._kind.timed(source)))[0]
            return told / (1e3 if self._kind.milliseconds else 1) / count

        mine, bare = (median(times) for times in await interleaved(rounds, ours, floor))
        return mine, bare

    async def memory(self, bar: str) -> Row:
        """Return the row of the private memory of a waiting process."""
        await self.settle()
        bare = [await Floor.ready(self._launcher) for _ in range(4)]
        await asyncio.sleep(SETTLED_SECONDS)
        mine = median([private_mb(worker.guest.pid) for worker in self._pool._ready])
        floor = median([private_mb(each.guest.pid) for each in bare])
        for each in bare:
            await each.end()
        name = f"memory of a waiting {self._kind.name} process"
        return name, f"{mine:.1f} MB", f"{floor:.1f} MB", f"{mine - floor:+.1f} MB", bar


def private_mb(pid: int) -> float:
    """Return the private dirty memory of a process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Private_Dirty"].split()[0]) / 1024
