"""The desk where requests wait: it passes each one to its listeners, and takes one answer to each."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gloveport.approvals.request import Answer, ApprovalRequest, StandingApproval
from gloveport.errors import ApprovalError, GloveportError, ToolError

MAX_WAITING_REQUESTS = 1000
MAX_WAITING_OF_AN_AGENT = 500  # so that one agent can't keep the others from asking
MAX_STANDING_APPROVALS = 1000
DEFAULT_EXPIRY_SECONDS = 7 * 86400.0
OWNER = "on_approval"
"""The approver of what the code that owns the port answers."""

logger = logging.getLogger("gloveport")

ArgumentCheck = Callable[[Mapping[str, Any]], object]
OnApproval = Callable[[ApprovalRequest], Answer | bool | Awaitable[Answer | bool]]
Listener = Callable[[Literal["asked", "answered", "expired", "withdrawn"], ApprovalRequest], None]


@dataclass(slots=True)
class _Waiting:
    request: ApprovalRequest
    answered: asyncio.Future[Answer]
    check: ArgumentCheck
    stays: bool = False  # in the store, when this host no longer waits for it


StoredRequest = tuple[ApprovalRequest, Answer | None]
"""A request in the store, with the answer that nobody has taken yet."""


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
        self._approving: set[asyncio.Task[None]] = set()
        # Set by the link to a store, where other processes answer and the standing approvals are those of all hosts.
        self.stored_standing: Callable[[ApprovalRequest], Awaitable[list[StandingApproval]]] | None = None
        self.keep_standing: Callable[[StandingApproval], None] | None = None
        self.take_stored_answers: Callable[[], Awaitable[None]] | None = None
        self.find_stored: Callable[[ApprovalRequest], Awaitable[StoredRequest | None]] | None = None
        self.refuse_stored: Callable[[str, str], Awaitable[None]] | None = None
        self.keep_answer: Callable[[ApprovalRequest, Answer], None] | None = None
        self.when_stored: Callable[[], Awaitable[None]] | None = None

    @property
    def waiting(self) -> tuple[ApprovalRequest, ...]:
        """The requests that nobody has answered, the oldest first."""
        waiting = (one.request for one in self._waiting.values() if not one.answered.done())
        return tuple(sorted(waiting, key=lambda one: one.asked))

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

    async def find_earlier(self, request: ApprovalRequest) -> StoredRequest | None:
        """Return what an earlier host of the run has asked about the same call; raise StoreError."""
        return None if self.find_stored is None else await self.find_stored(request)

    async def ask(
        self,
        request: ApprovalRequest,
        check: ArgumentCheck = lambda args: None,
        *,
        stored: StoredRequest | None = None,
        advise: Callable[[], Awaitable[tuple[str, ...]]] | None = None,
    ) -> Answer:
        """Return the answer to a request; raise ApprovalError when it expires. Cancelling this withdraws the request.

        `check` raises ToolError for changed arguments that the tool does not take. `stored` is what `find_earlier` has
        found: that request counts, and the answer to it. `advise` returns the advice of a
        new request; it is called only if a person has to answer. Raise StoreError when the store can't be used and only
        an answer from there could come.
        """
        if stored is not None:
            request, answer = stored
            if answer is not None and await self._takes_stored(request, answer, check):
                return answer
        if standing := await self.find_standing(request):
            answer = Answer(True, standing.approver, "always" if standing.run is None else "run")
            if stored is not None:
                self._taken(request, answer)
            return answer
        if stored is None and advise is not None:
            request = replace(request, advice=await advise())
        own = sum(one.request.agent == request.agent for one in self._waiting.values())
        if own >= MAX_WAITING_OF_AN_AGENT or len(self._waiting) >= MAX_WAITING_REQUESTS:
            raise ApprovalError(f"{len(self._waiting):,} calls wait for a person already")
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[request.id] = _Waiting(request, answered, check)
        self._tell("asked", request)
        asking = asyncio.ensure_future(self._ask_owner(self.on_approval, request)) if self.on_approval else None
        try:
            async with asyncio.timeout(max(request.expires - self._clock(), 0)):
                answer = await answered
        except TimeoutError:
            self._tell("expired", request)
            raise ApprovalError(f"nobody answered within {request.expires - request.asked:,.0f} s") from None
        except (asyncio.CancelledError, GloveportError):
            if not waiting.stays:
                self._tell("withdrawn", request)
            raise
        finally:
            self._waiting.pop(request.id, None)
            if asking is not None:
                asking.cancel()
        self._taken(request, answer)
        return answer

    async def _takes_stored(self, request: ApprovalRequest, answer: Answer, check: ArgumentCheck) -> bool:
        """Take an answer to a request of an earlier host. One that can't be followed is refused, and the call waits on."""
        try:
            self._check_answer(request, answer, check)
        except (ApprovalError, ToolError) as error:
            if self.refuse_stored is not None:
                await self.refuse_stored(request.id, error.message)
            return False
        if answer.approved and answer.scope != "once":
            self._stand(request, answer)
        self._taken(request, answer)
        return True

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
        self._check_answer(found.request, answer, found.check)
        found.answered.set_result(answer)
        if answer.approved and answer.scope != "once":
            standing = self._stand(found.request, answer)
            task = found.answered.get_loop().create_task(self._approve_covered(standing, answer))
            self._approving.add(task)
            task.add_done_callback(self._approving.discard)
        return found.request

    async def _approve_covered(self, standing: StandingApproval, answer: Answer) -> None:
        """Give a standing approval to the calls that wait already and that it covers."""
        for one in list(self._waiting.values()):
            await asyncio.sleep(0)  # a program may let a thousand calls wait, and each shape takes a while to make
            if not one.answered.done() and standing.covers(one.request) and self._clock() < one.request.expires:
                one.answered.set_result(answer)

    def answer_group(self, seen: Mapping[str, str], answer: Answer) -> tuple[ApprovalRequest, ...]:
        """Give one answer to exactly the requests that the approver has seen, by id and digest, and return them.

        Calls that the program has made meanwhile ask again. If one of them can't be answered, none is.
        """
        if answer.args is not None or answer.scope != "once":
            raise ApprovalError("one answer for several calls can neither change arguments nor stand for later calls")
        found = [self._check(id, digest) for id, digest in seen.items()]
        for one in found:
            self._check_answer(one.request, answer, one.check)
        for one in found:
            one.answered.set_result(answer)
        return tuple(one.request for one in found)

    def give_up(self, id: str, problem: GloveportError) -> None:
        """End a request that nobody can answer."""
        found = self._waiting.get(id)
        if found is not None and not found.answered.done():
            found.answered.set_exception(problem)

    def release(self, run: str) -> None:
        """Leave the requests of a run in the store: whoever goes on with the run takes the answers."""
        for one in self._waiting.values():
            one.stays = one.stays or one.request.run == run

    def end_run(self, run: str) -> None:
        """End the approvals that were given for the rest of a run: a later run may have the same id."""
        for one in [one for one in self._standing.values() if one.run == run]:
            del self._standing[one.id]

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

    def _check_answer(self, request: ApprovalRequest, answer: Answer, check: ArgumentCheck) -> None:
        """Raise ApprovalError or ToolError for an answer that this request can't have."""
        if answer.happened and not request.is_unknown:
            raise ApprovalError("only a call of which nobody knows whether it was made can be said to have happened")
        if request.is_unknown and (answer.args is not None or answer.scope != "once"):
            raise ApprovalError("a call that may have been made is answered by itself, with its own arguments")
        if request.reads and answer.scope != "once":
            raise ApprovalError("a call that could send out private data is approved by itself, not for later calls")
        if answer.scope != "once" and len(self._standing) >= MAX_STANDING_APPROVALS:
            raise ApprovalError(f"there are {MAX_STANDING_APPROVALS:,} standing approvals: revoke some")
        if answer.args is not None:
            if answer.scope != "once":
                raise ApprovalError("arguments can be changed for one call only, not for later ones")
            check(answer.args)

    def _stand(self, request: ApprovalRequest, answer: Answer) -> StandingApproval:
        run = request.run if answer.scope == "run" else None
        made = StandingApproval(
            request.tool,
            request.agent,
            request.shape,
            answer.approver,
            self._clock(),
            run,
            definition=request.definition,
        )
        if self.keep_standing is not None and run is None:
            self.keep_standing(made)
        else:
            self._standing[made.id] = made
        return made

    def _taken(self, request: ApprovalRequest, answer: Answer) -> None:
        """Note the answer that counts. It may have come from here while another one lay in the store."""
        if self.keep_answer is not None:
            self.keep_answer(request, answer)
        self._tell("answered", request)

    def _tell(self, what: Literal["asked", "answered", "expired", "withdrawn"], request: ApprovalRequest) -> None:
        for listener in list(self._listeners):
            listener(what, request)
