"""Shared by all tests: one Gloveport with a few tools, real sandboxes and all."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, ToolError


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def echo(value: Any = None) -> Any:
    """Give back what was given."""
    return value


async def fail(message: str = "no luck", code: str = "tool-failed", data: Any = None) -> None:
    """Fail as asked."""
    raise ToolError(message, code=code, data=data, status=418, retryable=True)


async def crash() -> None:
    """Raise an ordinary exception."""
    raise KeyError("lost key")


async def get_weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "temp_f": 50, "days": days}


async def forever() -> None:
    """Never answer."""
    await asyncio.Event().wait()


TOOLS = [add, echo, fail, crash, get_weather, forever]


@pytest.fixture(scope="session")
async def port() -> AsyncIterator[Gloveport]:
    async with Gloveport(tools=TOOLS) as opened:
        yield opened


def children_of(pid: int) -> set[int]:
    """The descendants of a process, zombies included."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.add(child)
            todo.append(child)
    return found


def open_files() -> set[str]:
    """What this process has open, by descriptor and target."""
    out = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            out.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue
    return out
