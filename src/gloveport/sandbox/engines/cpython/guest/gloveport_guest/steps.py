"""`step(name, fn)` labels the calls that `fn` makes. The host records the labels; no decision depends on one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

MAX_LABEL_CHARS = 200
FORM = 'step takes a name and a function, as in `await step("load", fn)`, or a name, as in `async with step("load"):`'

label: ContextVar[str] = ContextVar("gloveport_step", default="")
"""The names of the steps around the code that runs now, from the outside in. Each task has its own."""

_get, _set, _reset = label.get, label.set, label.reset
_is_awaitable = inspect.isawaitable


class _Block:
    """`with step("name"):` and `async with step("name"):`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._before: list[Token[str]] = []

    def __enter__(self) -> None:
        self._before.append(_enter(self._name))

    def __exit__(self, *_: object) -> None:
        _reset(self._before.pop())

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def step(name: str, fn: Callable[..., Any] | None = None, *args: Any) -> Any:
    """Return a coroutine that calls `fn` and awaits its result if needed, or a context manager without `fn`."""
    if not isinstance(name, str) or not (fn is None or callable(fn)):
        raise TypeError(FORM)
    return _Block(name) if fn is None else _run(name, fn, args)


async def _run(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    before = _enter(name)
    try:
        value = fn(*args)
        return await value if _is_awaitable(value) else value
    finally:
        _reset(before)


def _enter(name: str) -> Token[str]:
    outer = _get()
    return _set((f"{outer}/{name}" if outer else name)[:MAX_LABEL_CHARS])
