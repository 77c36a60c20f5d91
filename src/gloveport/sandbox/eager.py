"""Start coroutines at once instead of in the next turn of the event loop, with all guarantees of a task.

Most calls return without waiting. For them, creating a task and turning the loop would cost more than the rest of the
call. So the starter steps a coroutine at once, as the current task and in that task's own context: `asyncio.timeout`,
task groups and anyio look up the current task and would otherwise cancel the caller's. If the coroutine ends in its first
step, the task stays unused for the next one, unless the context changed. If it waits, it continues in the task.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportAttributeAccessIssue]
from collections.abc import Coroutine, Generator
from typing import Any


class _Continuation(Coroutine[Any, Any, Any]):
    """The coroutine of a prepared task: it waits for `slot`, then continues with the coroutine it was given.

    Invariant: `coroutine` is set exactly once, between the coroutine's first step and the task's next step.
    """

    __slots__ = ("coroutine", "first", "slot")

    def __init__(self, slot: asyncio.Future[None]) -> None:
        self.slot = slot
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.first: Any = None

    def send(self, value: Any) -> Any:
        if self.coroutine is None:
            self.slot._asyncio_future_blocking = True  # as an await of `slot` would set it
            return self.slot
        if self.first is not None:
            first, self.first = self.first, None
            return first
        return self.coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        if self.coroutine is None:
            raise error[0]
        self.first = None
        return self.coroutine.throw(*error)

    def close(self) -> None:
        if self.coroutine is not None:
            self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError("only a task steps this")


class EagerTaskStarter:
    """Starts coroutines at once. One prepared task serves all those that end in their first step."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._base = contextvars.copy_context()
        self._task: asyncio.Task[Any] | None = None

    def _prepare(self) -> asyncio.Task[Any]:
        self._context = self._base.copy()
        self._rest = _Continuation(self._loop.create_future())
        self._task = asyncio.Task(self._rest, loop=self._loop, context=self._context)
        return self._task

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[Any] | None:
        """Step a coroutine; return None if it ended, else the task that continues it. Raises what the first step raises.

        Call it from a callback of the loop, not from a task.
        """
        task = self._task
        if task is None or task.cancelling():  # an earlier call cancelled it
            task = self._prepare()
        loop, rest, context = self._loop, self._rest, self._context
        _enter_task(loop, task)
        try:
            first = context.run(coroutine.send, None)
        except StopIteration:
            if task.cancelling() or context != self._base:
                self.close()
            return None
        except BaseException:
            self.close()
            raise
        finally:
            _leave_task(loop, task)
        rest.coroutine, rest.first = coroutine, first
        if not rest.slot.done():
            rest.slot.set_result(None)
        self._task = None
        return task

    def close(self) -> None:
        """Cancel the prepared task."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
