"""The desk where requests wait for an answer: it hands each one to those who listen, and takes one answer for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Literal

from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval, shape_of
from gloveport.errors import ApprovalError

MAX_WAITING_REQUESTS = 1000
MAX_STANDING_APPROVALS = 1000

Listener = Callable[[Literal["asked", "answered", "expired", "withdrawn"], ApprovalRequest], None]


class ApprovalDesk:
    """The requests of one host that wait. `answer` is for approvers only: nothing that an agent reaches may call it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._waiting: dict[str, tuple[ApprovalRequest, asyncio.Future[Answer]]] = {}
        self._standing: dict[str, StandingApproval] = {}
        self._listeners: list[Listener] = []

    @property
    def waiting(self) -> tuple[ApprovalRequest, ...]:
        """The requests that nobody has answered, the oldest first."""
        return tuple(request for request, _ in self._waiting.values())

    @property
    def standing(self) -> tuple[StandingApproval, ...]:
        """The standing approvals, the oldest first."""
        return tuple(self._standing.values())

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener for each change from now on; return the function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def find_standing(self, request: ApprovalRequest) -> StandingApproval | None:
        """Return the standing approval that covers a request, if there is one."""
        return next((one for one in self._standing.values() if one.covers(request)), None)

    async def ask(self, request: ApprovalRequest) -> Answer:
        """Return the answer to a request; raise ApprovalError when it expires. Cancelling this withdraws the request."""
        if standing := self.find_standing(request):
            return Answer(True, standing.approver, "always")
        if len(self._waiting) >= MAX_WAITING_REQUESTS:
            raise ApprovalError(f"{MAX_WAITING_REQUESTS:,} calls wait for a person already", code="denied")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = request, answered
        self._tell("asked", request)
        try:
            async with asyncio.timeout(max(request.expires - self._clock(), 0)):
                answer = await answered
        except TimeoutError:
            self._tell("expired", request)
            raise ApprovalError(f"nobody answered within {request.expires - request.asked:,.0f} s", code="denied") from None
        except asyncio.CancelledError:
            self._tell("withdrawn", request)
            raise
        finally:
            self._waiting.pop(request.id, None)
        self._tell("answered", request)
        return answer

    def answer(self, id: str, digest: str, answer: Answer) -> ApprovalRequest:
        """Answer a request whose digest the approver has seen, and return it.

        Raise ApprovalError for one that does not wait, that asks about another call, or that has expired.
        """
        request, answered = self._check(id, digest)
        if answer.args is not None and answer.scope != "once":
            raise ApprovalError("arguments can be changed for one call only, not for later ones")
        if answer.approved and answer.scope == "always":
            self._stand(request, answer)
        answered.set_result(answer)
        return request

    def answer_group(self, seen: Mapping[str, str], answer: Answer) -> tuple[ApprovalRequest, ...]:
        """Give one answer to exactly the requests that the approver has seen, by id and digest, and return them.

        Calls that the program has made meanwhile ask again. If one of them can't be answered, none is.
        """
        if answer.args is not None or answer.scope != "once":
            raise ApprovalError("one answer for several calls can neither change arguments nor stand for later calls")
        found = [self._check(id, digest) for id, digest in seen.items()]
        for _, answered in found:
            answered.set_result(answer)
        return tuple(request for request, _ in found)

    def revoke(self, id: str) -> StandingApproval:
        """End a standing approval, and return it."""
        found = self._standing.pop(id, None)
        if found is None:
            raise ApprovalError(f"there is no standing approval {id[:40]}")
        return found

    def _check(self, id: str, digest: str) -> tuple[ApprovalRequest, asyncio.Future[Answer]]:
        found = self._waiting.get(id)
        if found is None or found[1].done():
            raise ApprovalError(f"no request {id[:40]} waits: it was answered, has expired, or never was")
        if found[0].digest != digest:
            raise ApprovalError(f"the request {id} asks about another call than the one that was shown")
        if self._clock() >= found[0].expires:
            raise ApprovalError(f"the request {id} has expired")
        return found

    def _stand(self, request: ApprovalRequest, answer: Answer) -> None:
        if len(self._standing) >= MAX_STANDING_APPROVALS:
            raise ApprovalError(f"there are {MAX_STANDING_APPROVALS:,} standing approvals: revoke some")
        made = StandingApproval(request.tool, request.agent, shape_of(request.args), answer.approver, self._clock())
        self._standing[made.id] = made

    def _tell(self, what: Literal["asked", "answered", "expired", "withdrawn"], request: ApprovalRequest) -> None:
        for listener in list(self._listeners):
            listener(what, request)
