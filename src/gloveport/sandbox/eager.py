"""Starting coroutines now instead of in the next turn of the loop, with everything that a task promises.

Most calls are answered without ever waiting; making a task and turning the loop would cost them more than the rest of the
call. So a coroutine is stepped at once, as the current task and in that task's own context: `asyncio.timeout`, task groups
and anyio look for the current task and would otherwise cancel whoever makes the call. A coroutine that ends in its first
step leaves the task unused for the next one, unless it changed the context; one that waits goes on in the task.
"""

from __future__ import annotations

import asyncio
import contextvars
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportAttributeAccessIssue]
from collections.abc import Coroutine, Generator
from typing import Any


class _Continuation(Coroutine[Any, Any, Any]):
    """What a prepared task steps: first it waits for `slot`; once handed a coroutine, it goes on with that.

    Invariant: `coroutine` is set exactly once, between the coroutine's first step and the task's next one.
    """

    __slots__ = ("coroutine", "first", "slot")

    def __init__(self, slot: asyncio.Future[None]) -> None:
        self.slot = slot
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.first: Any = None

    def send(self, value: Any) -> Any:
        if self.coroutine is None:
            self.slot._asyncio_future_blocking = True  # what `yield slot` from an await would say to the task
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
    """Starts coroutines at once; keeps one prepared task for those that end at once."""

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
        """None when the coroutine ended at once, else the task that goes on with it; raises what the first step raises.

        To be called from a callback of the loop, not from a task.
        """
        task = self._task
        if task is None or task.cancelling():  # a call that had ended left a cancel() behind
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
        """End the prepared task."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
