"""Connects the desk of a host to the store: puts its requests there, and takes the answers that approvers gave there.

It looks for answers only while requests wait. What the store can't take is answered in this process alone, if at all.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval
from gloveport.approvals.shelf import ApprovalShelf, RequestState
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
        desk.stored_standing = self._standing
        desk.keep_standing = self._keep_standing

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
            self._soon(self._put, request)
            if self._polling is None or self._polling.done():
                self._polling = asyncio.ensure_future(self._poll())
        else:
            states: dict[str, RequestState] = {"answered": "taken", "expired": "expired", "withdrawn": "withdrawn"}
            self._soon(self._end, request.id, states[what])

    def _soon(self, step: Any, *args: Any) -> None:
        task = asyncio.ensure_future(self._do(step, *args))
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)

    async def _do(self, step: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, step, *args)

    async def _poll(self) -> None:
        """Take the answers that others gave, until nothing waits."""
        while self._desk.waiting:
            await asyncio.sleep(POLL_SECONDS)
            try:
                answers = await self._do(self._answers)
            except GloveportError as error:
                logger.warning("answers can't be read: %s", error.message)
                continue
            for id, answer in answers.items():
                await self._take(id, answer)

    async def _take(self, id: str, answer: Answer) -> None:
        request = next((one for one in self._desk.waiting if one.id == id), None)
        try:
            if request is not None:
                self._desk.answer(id, request.digest, answer)
        except (ApprovalError, ToolError) as error:
            await self._do(self._refuse, id, error.message)

    async def _standing(self, request: ApprovalRequest) -> list[StandingApproval]:
        return await self._do(self._find_standing, request.tool)

    def _keep_standing(self, given: StandingApproval) -> None:
        self._soon(self._stand, given)

    # In the thread.

    def _open(self) -> ApprovalShelf:
        if self._shelf is None:
            self._shelf = ApprovalShelf(self._path)
        return self._shelf

    def _put(self, request: ApprovalRequest) -> None:
        try:
            self._open().put(request, self._host)
        except GloveportError as error:
            logger.error("the request %s can be answered in this process alone: %s", request.id, error.message)

    def _end(self, id: str, state: RequestState) -> None:
        try:
            self._open().end(id, state)
        except GloveportError as error:
            logger.warning("the end of the request %s is not in the store: %s", id, error.message)

    def _answers(self) -> dict[str, Answer]:
        return self._open().answers(self._host)

    def _refuse(self, id: str, problem: str) -> None:
        self._open().refuse(id, problem)

    def _find_standing(self, tool: str) -> list[StandingApproval]:
        return self._open().standing(tool)

    def _stand(self, given: StandingApproval) -> None:
        self._open().stand(given)
