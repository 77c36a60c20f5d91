"""What a run asks a person: while it waits, its clock stands still, and the calls that wait hold no slot."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from gloveport.advice import ProgramFinding, advise
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.bridge.refusals import not_answered, run_ended
from gloveport.catalog.fingerprint import fingerprint
from gloveport.errors import ApprovalError, StoreError
from gloveport.large_values import off_loop
from gloveport.rules.labels import LabelledRead
from gloveport.types import CallApproval, CallRequest, Decision

if TYPE_CHECKING:
    from gloveport.approvals.desk import ApprovalDesk, StoredRequest
    from gloveport.bridge.bridge import Bridge
    from gloveport.bridge.made_call import MadeCall
    from gloveport.bridge.run_bridge import RunContext

MAX_ADVICE_SECONDS = 2.0  # that a person waits for advice; later, there is none

logger = logging.getLogger("gloveport")


class RunApprovals:
    """The requests of one run.

    `on_waiting` gets True when calls begin to wait for a person, and False when none does. `on_change` is called when a
    call starts or ends while others wait. `find_findings` returns what to look at in the program, unless whoever is asked
    lacks its text.
    """

    def __init__(self, bridge: Bridge, context: RunContext) -> None:
        self._bridge = bridge
        self._context = context
        self._waiting = 0
        self._asking: set[asyncio.Future[Answer]] = set()
        self.on_waiting: Callable[[bool], None] = lambda waits: None
        self.on_change: Callable[[], None] = lambda: None
        self.find_findings: Callable[[], Awaitable[tuple[ProgramFinding, ...]]] | None = None
        self._advice: tuple[str, ...] | None = None
        self._advising = asyncio.Lock()

    def call_happened(self) -> None:
        """Note that a call has started, ended or begun to wait."""
        if self._waiting:
            self.on_change()

    async def ask(
        self,
        desk: ApprovalDesk,
        request: CallRequest,
        made: MadeCall,
        decision: Decision,
        *,
        reads: tuple[LabelledRead, ...] = (),
        is_unknown: bool = False,
    ) -> tuple[Answer, CallApproval]:
        """Return the answer of a person to a call; raise ToolError if nobody answers."""
        asked = time.time()
        question = ApprovalRequest(
            run=self._context.run,
            call=self._context.call_base + made.id,
            tool=request.tool.address,
            args=request.args or {},
            agent=self._bridge.agent,
            asked=asked,
            expires=asked + desk.expiry_seconds,
            reason=decision.reason,
            rule=decision.rule,
            line=self._context.line_of(made.tool),
            definition=await off_loop(fingerprint, request.tool),
            is_unknown=is_unknown,
            reads=reads,
        )
        stored = await self._earlier(desk, question, made)
        question = question if stored is None else stored[0]
        audit = self._context.audit
        if audit is not None:
            audit.asked(made.id, question.tool, question.args, question.id, question.reads)
        answer = await self._answer(desk, question, stored, made)
        if audit is not None:
            told = {
                "approved": answer.approved,
                "approver": answer.approver,
                "scope": answer.scope,
                "reason": answer.reason,
                **({"happened": True} if answer.happened else {}),
            }
            audit.answered(made.id, question.id, told, answer.args)
        changed = question.args if answer.args is not None else None
        return answer, CallApproval(answer.approver, time.time() - question.asked, answer.scope, changed)

    async def _earlier(self, desk: ApprovalDesk, question: ApprovalRequest, made: MadeCall) -> StoredRequest | None:
        """Return what an earlier host has asked about this call: the record then names the request that a person saw."""
        if not self._context.is_resumed:
            return None
        try:
            return await desk.find_earlier(question)
        except StoreError as error:
            raise not_answered(made.tool, error) from None

    async def _answer(
        self, desk: ApprovalDesk, question: ApprovalRequest, stored: StoredRequest | None, made: MadeCall
    ) -> Answer:
        self.begin_waiting()
        check = made.contract.accept_named
        asking = asyncio.ensure_future(desk.ask(question, check, stored=stored, advise=self._advise))
        self._asking.add(asking)
        try:
            return await asking
        except (ApprovalError, StoreError) as error:
            raise not_answered(made.tool, error) from None
        except asyncio.CancelledError:
            asking.cancel()
            if asking in self._asking:
                raise
            raise run_ended(made.tool) from None
        finally:
            self._asking.discard(asking)
            self.end_waiting()

    async def _advise(self) -> tuple[str, ...]:
        """Return the advice about the program. It is sought once, for the first call that a person is asked about."""
        async with self._advising:
            if self._advice is None:
                self._advice = await self._find_advice()
            return self._advice

    async def _find_advice(self) -> tuple[str, ...]:
        if self.find_findings is None:
            return ()
        try:
            async with asyncio.timeout(MAX_ADVICE_SECONDS):
                return advise(await self.find_findings())
        except Exception as error:  # noqa: BLE001 - whatever fails here, the person is asked without advice
            logger.info("run %s: no advice about its program: %s", self._context.run, type(error).__name__)
            return ()

    def begin_waiting(self) -> None:
        """Note that a call waits for a person."""
        self._waiting += 1
        if self._waiting == 1:
            self.on_waiting(True)

    def end_waiting(self) -> None:
        """Note that a call waits no more."""
        self._waiting -= 1
        if self._waiting == 0:
            self.on_waiting(False)

    def stop(self) -> None:
        """Withdraw what a person was asked: the program has ended, and nobody waits for these calls."""
        asking, self._asking = self._asking, set()
        for each in asking:
            each.cancel()
