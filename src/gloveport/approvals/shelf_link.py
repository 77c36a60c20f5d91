"""Connects the desk of a host to the store: puts its requests there, and takes the answers that approvers gave there.

It looks for answers only while requests wait. A request that the store can't take is answered by the owner of the
port; without an owner who answers, its call is refused at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval
from gloveport.approvals.shelf import ApprovalShelf, RequestState, ShelvedAnswer
from gloveport.errors import ApprovalError, GloveportError, ToolError

POLL_SECONDS = 0.2

logger = logging.getLogger("gloveport")


class ShelfLink:
    """The link between the desk of this host and the store at a path. `host` is the name of its chain of events there."""

    def __init__(self, desk: ApprovalDesk, path: Path, host: str) -> None:
        self._desk = desk
        self._path = path
        self._host = host
        self._shelf: ApprovalShelf | None = None
        self._thread = ThreadPoolExecutor(1, "gloveport-approvals")  # one thread: the steps of a request stay in order
        self._polling: asyncio.Task[None] | None = None
        self._steps: set[asyncio.Future[Any]] = set()
        self._unlisten = desk.listen(self._happened)
        self._released: set[str] = set()
        self.on_answer: Callable[[str], None] = lambda run: None
        """Called with a run that was released, when a request of it is answered."""
        desk.stored_standing = self._standing
        desk.keep_standing = self._keep_standing
        desk.take_stored_answers = self._take_answers
        desk.find_stored = self._find_same
        desk.refuse_stored = self._refuse_answer
        desk.keep_answer = self._keep_answer
        desk.when_stored = self._when_stored

    async def close(self) -> None:
        """Write what is left, and close the file."""
        self._unlisten()
        if self._polling is not None:
            self._polling.cancel()
        await asyncio.gather(*self._steps, return_exceptions=True)
        if self._shelf is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._shelf.close)
        self._thread.shutdown(wait=False)

    def _happened(self, what: Literal["asked", "answered", "expired", "withdrawn"], request: ApprovalRequest) -> None:
        if what == "asked":
            self._soon(self._shelve(request))
            self._look()
        elif what != "answered":  # `_keep_answer` ends those
            self._soon(self._do(self._end, request.id, what))

    def _keep_answer(self, request: ApprovalRequest, answer: Answer) -> None:
        self._soon(self._do(self._end, request.id, "taken", answer))

    def release(self, run: str) -> None:
        """Look for answers to the requests of a run that this host does not run any more."""
        self._released.add(run)
        self._look()

    def _look(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = asyncio.ensure_future(self._poll())

    def _soon(self, step: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(step)
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)

    async def _when_stored(self) -> None:
        """Return when all that has happened so far is in the store, or could not be written."""
        await asyncio.gather(*self._steps, return_exceptions=True)

    async def _do(self, step: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, step, *args)

    async def _shelve(self, request: ApprovalRequest) -> None:
        try:
            await self._do(self._put, request)
        except GloveportError as error:
            if self._desk.on_approval is None:
                self._desk.give_up(request.id, error)
            else:
                logger.warning("only the owner of the port can answer the request %s: %s", request.id, error.message)

    async def _poll(self) -> None:
        """Take the answers that others gave, until nothing waits."""
        while self._desk.waiting or self._released:
            await asyncio.sleep(POLL_SECONDS)
            await self._take_answers()

    async def _take_answers(self) -> None:
        try:
            answers = await self._do(self._answers)
        except GloveportError as error:
            logger.warning("answers can't be read: %s", error.message)
            return
        waiting = {request.id for request in self._desk.waiting}
        for given in answers:
            if given.id in waiting:
                await self._take(given)
            if given.run in self._released:
                self._released.discard(given.run)
                self.on_answer(given.run)

    async def _take(self, given: ShelvedAnswer) -> None:
        try:
            if given.answer is None:
                raise ApprovalError("the answer can't be read")
            self._desk.answer(given.id, given.digest, given.answer)
        except (ApprovalError, ToolError) as error:
            await self._refuse_answer(given.id, error.message)

    async def _refuse_answer(self, id: str, problem: str) -> None:
        await self._do(self._refuse, id, problem)

    async def _standing(self, request: ApprovalRequest) -> list[StandingApproval]:
        return await self._do(self._find_standing, request.tool)

    async def _find_same(self, request: ApprovalRequest) -> tuple[ApprovalRequest, Answer | None] | None:
        return await self._do(lambda: self._open().find_same(request))

    def _keep_standing(self, given: StandingApproval) -> None:
        self._soon(self._do(self._stand, given))

    # In the thread.

    def _open(self) -> ApprovalShelf:
        if self._shelf is None:
            self._shelf = ApprovalShelf(self._path)
        return self._shelf

    def _put(self, request: ApprovalRequest) -> None:
        self._open().put(request, self._host)

    def _end(self, id: str, state: RequestState, answer: Answer | None = None) -> None:
        try:
            self._open().end(id, state, answer)
        except GloveportError as error:
            logger.warning("the end of the request %s is not in the store: %s", id, error.message)

    def _answers(self) -> list[ShelvedAnswer]:
        return self._open().answers(self._host)

    def _refuse(self, id: str, problem: str) -> None:
        try:
            self._open().refuse(id, problem)
        except GloveportError as error:  # the answer is still there, and is looked at again
            logger.warning("the answer to the request %s can't be refused: %s", id, error.message)

    def _find_standing(self, tool: str) -> list[StandingApproval]:
        return self._open().standing(tool)

    def _stand(self, given: StandingApproval) -> None:
        try:
            self._open().stand(given)
        except GloveportError as error:
            logger.warning("the standing approval of %s is lost, and its calls ask again: %s", given.tool, error.message)
