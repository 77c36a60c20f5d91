"""Tools for tests of the command line."""

import asyncio
import os

from gloveport import ToolError


def greet(name: str) -> str:
    """A greeting."""
    return f"hello {name}"


def fail() -> None:
    """Always fails."""
    raise ValueError("no luck")


def refuse() -> None:
    """Fails with a code of its own."""
    raise ToolError("not in stock", code="out-of-stock", data={"left": 0})


def deny() -> None:
    """Fails with a code of Gloveport's."""
    raise ToolError("ask your manager", code="denied")


def hold(fifo: str) -> str:
    """Waits until someone writes into a named pipe."""
    with open(fifo) as pipe:
        return pipe.read()


async def forever() -> None:
    """Never answers."""
    await asyncio.Event().wait()


def print_much() -> int:
    """Prints in every way that there is."""
    print("printed by python")
    os.write(1, b"written to descriptor 1\n")
    os.system("echo echoed by a shell")
    return 1


def begin() -> None:
    """Says that it was called."""
    print("begun")


def evil() -> None:
    """Fails with text that would drive a terminal."""
    raise ToolError("\x1b]52;c;aGk=\x07\u202egone", code="evil")
