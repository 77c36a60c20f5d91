"""The entry of the guest: get the engine ready before the fork; after it, send `ready`, wait for the program, run it."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from .channel import Channel
from .engine import Engine

ENTRY = "$$entry"
NO_MEMORY = "out of memory"
OPTIONS = "options.js"

_channel = Channel()
_engine: Engine | None = None
_entry: Any = None


def preload() -> None:
    """Run the prelude and a small program once. The zygote calls it before any fork."""
    global _engine, _entry
    _engine = engine = Engine()
    context = engine.context
    doors = {
        "$$read": _channel.read,
        "$$send": _channel.send,
        "$$flush": _channel.flush,
        "$$compile": engine.compile,
        "$$drain": engine.drain,
        "$$limit": engine.limit,
        "$$relieve": engine.relieve,
    }
    for name, door in doors.items():
        context.add_callable(name, _guarded(door))
    context.set("$$version", engine.version)
    folder = os.path.dirname(__file__)
    for name in (OPTIONS, "prelude.js"):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            context.eval(file.read())
    engine.track_rejections(ENTRY)
    _entry = {name: context.eval(f"{ENTRY}.{name}") for name in ("main", "rehearse")}
    context.eval(f"delete globalThis['{ENTRY}']")
    rehearse()
    engine.weigh()


def rehearse() -> None:
    """Run a small program, before the fork or in a trial fork that shows which memory a run touches."""
    _entry["rehearse"]("rehearsal.js")


def _guarded(door: Any) -> Any:
    """Exit the process on a failure of the guest: the program must not see it as its own error."""

    def call(*args: Any) -> Any:
        try:
            return door(*args)
        except BaseException as error:
            _die(error)

    return call


def _die(error: BaseException) -> NoReturn:
    full = isinstance(error, MemoryError) or NO_MEMORY in str(error) or (_engine is not None and _engine.was_full())
    said = NO_MEMORY if full else f"{type(error).__name__}: {error}"
    os.write(2, said.encode("utf-8", "replace")[:1000])
    os._exit(70)


def main() -> NoReturn:
    """Run one program in the forked, jailed process, then wait to be killed. It never returns."""
    try:
        _channel.open(os.dup(0))
        _entry["main"]()
    except BaseException as error:
        _die(error)
    os._exit(0)
