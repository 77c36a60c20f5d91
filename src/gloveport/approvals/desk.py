"""The desk where requests wait for an answer: it hands each one to those who listen, and takes one answer for each."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval, shape_of
from gloveport.errors import ApprovalError, ToolError

MAX_WAITING_REQUESTS = 1000
MAX_STANDING_APPROVALS = 1000
DEFAULT_EXPIRY_SECONDS = 3600.0
OWNER = "on_approval"
"""The approver of what the code that owns the port answers."""

logger = logging.getLogger("gloveport")

ArgumentCheck = Callable[[Mapping[str, Any]], object]
OnApproval = Callable[[ApprovalRequest], Answer | bool | Awaitable[Answer | bool]]
Listener = Callable[[Literal["asked", "answered", "expired", "withdrawn"], ApprovalRequest], None]


class _Waiting(NamedTuple):
    request: ApprovalRequest
    answered: asyncio.Future[Answer]
    check: ArgumentCheck


class ApprovalDesk:
    """The requests of one host that wait. `answer` is for approvers only: nothing that an agent reaches may call it.

    With `on_approval`, that function of the owner of the port answers every request.
    """

    def __init__(
        self,
        on_approval: OnApproval | None = None,
        expiry_seconds: float = DEFAULT_EXPIRY_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.on_approval = on_approval
        self.expiry_seconds = expiry_seconds
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self._standing: dict[str, StandingApproval] = {}
        self._listeners: list[Listener] = []
        # Set by the link to a store: there, the standing approvals are those of all hosts.
        self.stored_standing: Callable[[ApprovalRequest], Awaitable[list[StandingApproval]]] | None = None
        self.keep_standing: Callable[[StandingApproval], None] | None = None

    @property
    def waiting(self) -> tuple[ApprovalRequest, ...]:
        """The requests that nobody has answered, the oldest first."""
        return tuple(one.request for one in self._waiting.values() if not one.answered.done())

    @property
    def standing(self) -> tuple[StandingApproval, ...]:
        """The standing approvals, the oldest first."""
        return tuple(self._standing.values())

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener for each change from now on; return the function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def find_standing(self, request: ApprovalRequest) -> StandingApproval | None:
        """Return the standing approval that covers a request, if there is one."""
        given = list(self._standing.values())
        if self.stored_standing is not None:
            given += await self.stored_standing(request)
        return next((one for one in given if one.covers(request)), None)

    async def ask(self, request: ApprovalRequest, check: ArgumentCheck = lambda args: None) -> Answer:
        """Return the answer to a request; raise ApprovalError when it expires. Cancelling this withdraws the request.

        `check` raises ToolError for changed arguments that the tool does not take.
        """
        if standing := await self.find_standing(request):
            return Answer(True, standing.approver, "always" if standing.run is None else "run")
        if len(self._waiting) >= MAX_WAITING_REQUESTS:
            raise ApprovalError(f"{MAX_WAITING_REQUESTS:,} calls wait for a person already")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = _Waiting(request, answered, check)
        self._tell("asked", request)
        asking = asyncio.ensure_future(self._ask_owner(self.on_approval, request)) if self.on_approval else None
        try:
            async with asyncio.timeout(max(request.expires - self._clock(), 0)):
                answer = await answered
        except TimeoutError:
            self._tell("expired", request)
            raise ApprovalError(f"nobody answered within {request.expires - request.asked:,.0f} s") from None
        except asyncio.CancelledError:
            self._tell("withdrawn", request)
            raise
        finally:
            self._waiting.pop(request.id, None)
            if asking is not None:
                asking.cancel()
        self._tell("answered", request)
        return answer

    async def _ask_owner(self, on_approval: OnApproval, request: ApprovalRequest) -> None:
        """Let the function of the port's owner answer. One that raises has not approved."""
        try:
            if inspect.iscoroutinefunction(on_approval):
                given = await on_approval(request)
            else:
                given = await asyncio.to_thread(on_approval, request)
                given = await given if inspect.isawaitable(given) else given
            answer = Answer.of(given, OWNER)
        except Exception:
            logger.exception("on_approval raised: the call of %s is denied", request.tool)
            answer = Answer(False, OWNER, reason="the question could not be asked")
        try:
            self.answer(request.id, request.digest, answer)
        except (ApprovalError, ToolError) as error:
            logger.warning("the answer to the call of %s is refused: %s", request.tool, error)
            self.answer(request.id, request.digest, Answer(False, OWNER, reason=str(error.message)))

    def answer(self, id: str, digest: str, answer: Answer) -> ApprovalRequest:
        """Answer a request whose digest the approver has seen, and return it.

        Raise ApprovalError for one that does not wait, that asks about another call, or that has expired.
        """
        found = self._check(id, digest)
        if answer.scope != "once" and len(self._standing) >= MAX_STANDING_APPROVALS:
            raise ApprovalError(f"there are {MAX_STANDING_APPROVALS:,} standing approvals: revoke some")
        if answer.args is not None:
            if answer.scope != "once":
                raise ApprovalError("arguments can be changed for one call only, not for later ones")
            found.check(answer.args)
        found.answered.set_result(answer)
        if answer.approved and answer.scope != "once":
            self._stand(found.request, answer)
        return found.request

    def answer_group(self, seen: Mapping[str, str], answer: Answer) -> tuple[ApprovalRequest, ...]:
        """Give one answer to exactly the requests that the approver has seen, by id and digest, and return them.

        Calls that the program has made meanwhile ask again. If one of them can't be answered, none is.
        """
        if answer.args is not None or answer.scope != "once":
            raise ApprovalError("one answer for several calls can neither change arguments nor stand for later calls")
        found = [self._check(id, digest) for id, digest in seen.items()]
        for one in found:
            one.answered.set_result(answer)
        return tuple(one.request for one in found)

    def revoke(self, id: str) -> StandingApproval:
        """End a standing approval, and return it."""
        found = self._standing.pop(id, None)
        if found is None:
            raise ApprovalError(f"there is no standing approval {id[:40]}")
        return found

    def _check(self, id: str, digest: str) -> _Waiting:
        found = self._waiting.get(id)
        if found is None or found.answered.done():
            raise ApprovalError(f"no request {id[:40]} waits: it was answered, has expired, or never was")
        if found.request.digest != digest:
            raise ApprovalError(f"the request {id} asks about another call than the one that was shown")
        if self._clock() >= found.request.expires:
            raise ApprovalError(f"the request {id} has expired")
        return found

    def _stand(self, request: ApprovalRequest, answer: Answer) -> None:
        run = request.run if answer.scope == "run" else None
        made = StandingApproval(request.tool, request.agent, shape_of(request.args), answer.approver, self._clock(), run)
        if self.keep_standing is not None and run is None:
            self.keep_standing(made)
        else:
            self._standing[made.id] = made

    def _tell(self, what: Literal["asked", "answered", "expired", "withdrawn"], request: ApprovalRequest) -> None:
        for listener in list(self._listeners):
            listener(what, request)
