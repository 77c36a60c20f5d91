"""Tells a person about new requests for approval: `[approvals] notify` runs a command, or posts to a URL.

The notice says which tool of which agent asks, and not with which arguments: those are shown where the person answers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Literal

import orjson

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import ApprovalRequest

NOTICE_SECONDS = 30.0
MAX_NOTICES_AT_ONCE = 4

logger = logging.getLogger("gloveport")


class ApprovalNotices:
    """Sends a notice for each new request. One that fails is logged, and changes nothing else."""

    def __init__(self, desk: ApprovalDesk, notify: str | tuple[str, ...]) -> None:
        self._notify = notify
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Semaphore(MAX_NOTICES_AT_ONCE)
        self._egress: Any = None
        desk.listen(self._happened)

    async def close(self) -> None:
        """Give up the notices that are under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._egress is not None:
            await self._egress.close()

    def _happened(self, what: Literal["asked", "answered", "expired", "withdrawn"], request: ApprovalRequest) -> None:
        if what == "asked":
            task = asyncio.ensure_future(self._send(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, request: ApprovalRequest) -> None:
        names = ("id", "tool", "agent", "run", "reason", "asked", "expires")
        body = orjson.dumps({name: getattr(request, name) for name in names})
        try:
            async with self._turn, asyncio.timeout(NOTICE_SECONDS):
                await (self._post(self._notify, body) if isinstance(self._notify, str) else self._start(self._notify, body))
        except Exception as error:  # noqa: BLE001 - a notice is a courtesy: the call waits all the same
            logger.warning("the notice about the request %s could not be sent: %s", request.id, error)

    async def _post(self, url: str, body: bytes) -> None:
        from gloveport import urls
        from gloveport.policy.egress import Egress, Reach, Request

        if self._egress is None:
            self._egress = Egress()
        reach = Reach(frozenset({urls.parse(url).origin}), allow_private=True, max_bytes=64 * 1024, max_redirects=0)
        reply = await self._egress.send(Request("POST", url, (("Content-Type", "application/json"),), body), reach, [])
        if reply.status >= 300:  # a redirect is not followed, so nobody has got the notice
            raise OSError(f"it answered with status {reply.status}")

    @staticmethod
    async def _start(command: tuple[str, ...], body: bytes) -> None:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await process.communicate(body)
        except BaseException:
            process.kill()
            raise
        if process.returncode:
            raise OSError(f"it ended with status {process.returncode}")
