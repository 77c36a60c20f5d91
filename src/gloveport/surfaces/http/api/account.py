"""The endpoints of whoever asks: who that is, and signing in and out of the web pages."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

import gloveport
from gloveport.errors import SandboxError
from gloveport.host.port import Gloveport
from gloveport.sandbox.jail.strength import STRENGTH_MEANING
from gloveport.store.tokens import ROLES
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ApiCall, ApiEndpoint, ApiReply, forbidden, json_bytes
from gloveport.surfaces.http.token import Caller
from gloveport.surfaces.web.sessions import LINK_SCHEME, WebSessions, set_cookie

_EVERY_ROLE = frozenset(ROLES)
_SANDBOX = schemas.record({"strength": schemas.TEXT, "meaning": schemas.TEXT, "problem": schemas.OPTIONAL_TEXT})
_HOLDER = {"name": schemas.TEXT, "role": {"enum": list(ROLES)}}
_ME = schemas.found(**_HOLDER, version=schemas.TEXT, sandbox=_SANDBOX)
_SIGNED_IN = schemas.found(**_HOLDER, key={**schemas.TEXT, "description": "to name in X-Gloveport, shown once"})


class AccountApi:
    """The caller itself, and the sessions of the pages."""

    def __init__(self, port: Gloveport, sessions: WebSessions) -> None:
        self._port = port
        self._sessions = sessions

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of the caller."""
        empty = schemas.record({})
        signed_in, signed_out = {201: _SIGNED_IN}, {200: schemas.found()}
        return [
            ApiEndpoint("GET", "/v1/me", _EVERY_ROLE, "Show who asks.", self._show, {200: _ME}),
            ApiEndpoint("POST", "/v1/sign-in", _EVERY_ROLE, "Sign a browser in.", self._sign_in, signed_in, body=empty),
            ApiEndpoint("POST", "/v1/sign-out", _EVERY_ROLE, "Sign it out.", self._sign_out, signed_out, body=empty),
        ]

    async def _show(self, call: ApiCall) -> ApiReply:
        try:
            strength, problem = (await self._port.sandboxes.jail()).strength, None
        except SandboxError as error:
            data: Any = error.data or {}
            strength, problem = data.get("strength", "none"), error.message
        sandbox = {"strength": strength, "meaning": STRENGTH_MEANING[strength], "problem": problem}
        version = {"version": gloveport.__version__}
        return ApiReply({"ok": True, **_holder(call.caller), **version, "sandbox": sandbox})

    async def _sign_in(self, call: ApiCall) -> Response:
        """Open a session for a one-time code or a token. The guard has taken either as that of the caller."""
        scheme, _, given = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() not in ("bearer", LINK_SCHEME):
            raise forbidden("a session can't open another one")
        cookie, session = self._sessions.open(call.caller, given.strip() if scheme.lower() == "bearer" else None)
        return _with_cookie(call, cookie, {"ok": True, **_holder(call.caller), "key": session.key}, 201)

    async def _sign_out(self, call: ApiCall) -> Response:
        self._sessions.close(call.headers)
        return _with_cookie(call, "", {"ok": True}, 200)


def _holder(caller: Caller) -> dict[str, Any]:
    return {"name": caller.name, "role": caller.role}


def _with_cookie(call: ApiCall, cookie: str, document: dict[str, Any], status: int) -> Response:
    headers = {"Set-Cookie": set_cookie(call.headers, cookie), "Cache-Control": "no-store"}
    return Response(json_bytes(document), status, headers, "application/json")
