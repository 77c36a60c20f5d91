"""Our engines and their floors, ready to run. A new engine is one more row of `ENGINES`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks import cpython, forked, monty, quickjs
from benchmarks.floor import Floor
from benchmarks.floor_monty import MontyFloor
from benchmarks.programs import PROGRAM_JS, PROGRAM_TS, unread
from gloveport import Gloveport
from gloveport.sandbox.launcher import Launch, Launcher
from gloveport.types import Language


class Bare(Protocol):
    """A bare engine process that runs one program."""

    async def run(self) -> Any: ...

    async def end(self) -> None: ...


MakeBare = Callable[[AsyncExitStack], Awaitable[Callable[[], Awaitable[Bare]]]]


class BareDeno:
    """A bare Deno without a jail."""

    def __init__(self, *, cold: bool = False) -> None:
        self._floor = Floor(cold=cold)

    async def ready(self) -> BareDeno:
        """Wait until the process is ready and return self."""
        await self._floor.ready()
        return self

    async def run(self) -> Any:
        """Run the program and return its value."""
        return await self._floor.run(f"async () => {{{PROGRAM_TS}\n}}", "typescript")

    async def end(self) -> None:
        """Kill and reap the process in the background."""
        await asyncio.to_thread(self._floor.end)


class BareFork:
    """A fork of CPython, with or without QuickJS, in our jail: the only safe way to fork one."""

    def __init__(self, floor: forked.Floor, program: str) -> None:
        self._floor = floor
        self._program = program

    async def run(self) -> Any:
        """Run the program and return its value."""
        return await self._floor.run(self._program)

    async def end(self) -> None:
        """Kill and reap the process."""
        await self._floor.end()


class BareMonty:
    """A worker of Monty's own client without a jail."""

    def __init__(self) -> None:
        self._floor = MontyFloor()

    async def run(self) -> Any:
        """Run the program and return its value."""
        return self._floor.run(monty.PROGRAM)[0]

    async def end(self) -> None:
        """Stop the worker."""
        self._floor.end()


async def bare_deno(stack: AsyncExitStack) -> Callable[[], Awaitable[Bare]]:
    return lambda: BareDeno().ready()


async def bare_fork(stack: AsyncExitStack, launch: Launch, program: str) -> Callable[[], Awaitable[Bare]]:
    launcher = Launcher(launch)
    await launcher.start()
    stack.push_async_callback(launcher.close)

    async def make() -> Bare:
        return BareFork(await forked.Floor.ready(launcher), program)

    return make


async def bare_monty(stack: AsyncExitStack) -> Callable[[], Awaitable[Bare]]:
    async def make() -> Bare:
        return BareMonty()

    return make


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine by its name, a program of 20 lines for it, and its floor."""

    name: str
    language: Language
    program: str
    bare: MakeBare

    async def run(self, port: Gloveport, *, again: bool = False) -> Any:
        """Run the program in our engine, as a text that is new or with `again` was read before; return its value."""
        text = self.program if again else unread(self.program, self.language)
        outcome = await port.run(text, language=self.language, engine=self.name)
        assert outcome.ok, outcome.error
        return outcome.value

    async def settle(self, port: Gloveport) -> None:
        """Wait until the pool is full and quiet."""
        pool = port._pools.find(port._pools.options(self.language, self.name, port.limits))
        while len(pool._ready) < pool._size:
            pool.refill()
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.03)


ENGINES = (
    Engine("deno", "typescript", PROGRAM_TS, bare_deno),
    Engine("quickjs", "typescript", PROGRAM_TS, lambda stack: bare_fork(stack, quickjs.floor_launch(), PROGRAM_JS)),
    Engine("cpython", "python", cpython.PROGRAM, lambda stack: bare_fork(stack, cpython.floor_launch(), cpython.PROGRAM)),
    Engine("monty", "python", monty.PROGRAM, bare_monty),
)
