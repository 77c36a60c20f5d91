"""The endpoints of approvals: calls that wait for a person, their answers, and standing approvals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.approvals.request import Answer
from gloveport.approvals.shelf import ApprovalShelf, ShelvedRequest
from gloveport.errors import ApprovalError
from gloveport.surfaces.documents import plan_document
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import PEOPLE, ApiCall, ApiEndpoint, ApiReply, no_such, versioned
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.record_documents import request_document

MAX_ANSWERED_AT_ONCE = 500

_ANSWER = schemas.record(
    {
        "approve": schemas.FLAG,
        "requests": {
            "type": "object",
            "description": "the digest of each call that is answered, as it was shown, by the id of its request",
            "additionalProperties": schemas.TEXT,
            "minProperties": 1,
            "maxProperties": MAX_ANSWERED_AT_ONCE,
        },
    },
    scope={"enum": ["once", "run", "always"], "default": "once"},
    reason={**schemas.TEXT, "maxLength": 2000},
    args={"type": "object", "description": "make the call with these arguments instead"},
    happened={**schemas.FLAG, "description": "an interrupted call was made, and returned `value`"},
    value=schemas.ANYTHING,
)
_STANDING = schemas.record(
    dict.fromkeys(("id", "tool", "agent", "shape", "approver"), schemas.TEXT) | {"given": schemas.NUMBER}
)


class ApprovalsApi:
    """The requests of every host on the store. Only people answer: no agent's token comes here (B8)."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of approvals."""
        listed = {200: schemas.found(approvals=schemas.rows(schemas.ref("ApprovalRequest"))), 304: None}
        one = {200: schemas.found(approval=schemas.ref("ApprovalRequest"))}
        answered = {200: schemas.found(answered=schemas.rows(schemas.TEXT))}
        standing = {200: schemas.found(standing=schemas.rows(_STANDING))}
        plans = {200: schemas.found(plans=schemas.rows({"type": "object"})), 304: None}
        revoked = {200: schemas.found(revoked=schemas.TEXT)}
        return [
            ApiEndpoint("GET", "/v1/approvals", PEOPLE, "List the calls that wait.", self._list, listed),
            ApiEndpoint("POST", "/v1/approvals/answer", PEOPLE, "Answer calls.", self._answer, answered, body=_ANSWER),
            ApiEndpoint("GET", "/v1/approvals/standing", PEOPLE, "List standing approvals.", self._standing, standing),
            ApiEndpoint("DELETE", "/v1/approvals/standing/{id}", PEOPLE, "End a standing approval.", self._revoke, revoked),
            ApiEndpoint("GET", "/v1/plans", PEOPLE, "List the plans that nobody has approved.", self._plans, plans),
            ApiEndpoint("GET", "/v1/approvals/{id}", PEOPLE, "Show a call, whether it waits or not.", self._get, one),
        ]

    async def _list(self, call: ApiCall) -> ApiReply:
        async def load() -> Mapping[str, Any]:
            found = await self._store.approvals(lambda shelf: list(map(_document, shelf.waiting())))
            return {"ok": True, "approvals": found}

        return await versioned(call, await self._store.approvals(lambda shelf: shelf.version()), load)

    async def _get(self, call: ApiCall) -> ApiReply:
        return ApiReply({"ok": True, "approval": _document(await self._find(call.path["id"]))})

    async def _find(self, id: str) -> ShelvedRequest:
        def find(shelf: ApprovalShelf) -> ShelvedRequest | None:
            try:
                found = shelf.find(id)
            except ApprovalError:
                return None
            return found if found.request.id == id else None

        if (found := await self._store.approvals(find)) is None:
            raise no_such("approval", id)
        return found

    async def _answer(self, call: ApiCall) -> ApiReply:
        body, seen = call.body, call.body["requests"]
        if len(seen) > 1 and ({"args", "happened", "value"} & body.keys() or body.get("scope", "once") != "once"):
            raise ApprovalError("one answer for several calls can neither change arguments nor stand for later calls")
        for id in seen:
            if not (found := await self._find(id)).lives:
                raise ApprovalError(f"the host of {found.request.id} has ended, and with it the run")
        answer = _answer_of(body, call.caller.name)
        await self._store.approvals(lambda shelf: shelf.answer(seen, answer))
        return ApiReply({"ok": True, "answered": list(seen)})

    async def _standing(self, call: ApiCall) -> ApiReply:
        found = await self._store.approvals(lambda shelf: shelf.standing())
        names = ("id", "tool", "agent", "shape", "approver", "given")
        return ApiReply({"ok": True, "standing": [{name: getattr(one, name) for name in names} for one in found]})

    async def _plans(self, call: ApiCall) -> ApiReply:
        async def load() -> Mapping[str, Any]:
            found = await self._store.plans(lambda shelf: list(map(plan_document, shelf.waiting())))
            return {"ok": True, "plans": found}

        return await versioned(call, await self._store.plans(lambda shelf: shelf.version()), load)

    async def _revoke(self, call: ApiCall) -> ApiReply:
        id = call.path["id"]
        if not any(one.id == id for one in await self._store.approvals(lambda shelf: shelf.standing())):
            raise no_such("approvals/standing", id)
        await self._store.approvals(lambda shelf: shelf.revoke(id, call.caller.name))
        return ApiReply({"ok": True, "revoked": id})


def _answer_of(body: Mapping[str, Any], approver: str) -> Answer:
    if not body["approve"]:
        return Answer(False, approver, reason=body.get("reason", ""))
    happened = body.get("happened", False)
    value = body.get("value") if happened else None
    return Answer(True, approver, body.get("scope", "once"), body.get("reason", ""), body.get("args"), happened, value)


def _document(found: ShelvedRequest) -> dict[str, Any]:
    state = found.state if found.lives or found.state != "waiting" else "ended"
    given = found.answer
    answer = None if given is None else {"approved": given.approved, "approver": given.approver, "reason": given.reason}
    about = {"state": state, "problem": found.problem, "held": found.is_held, "answer": answer}
    return request_document(found.request) | about
