"""The endpoints that sign in to the account of a source by OAuth: the link, and what became of it.

The first request finds the authorization server and shows it, with a digest; the same request with that digest starts the
sign-in. The answer of the browser comes to a loopback address of this machine, as with `gloveport auth login`.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Literal

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError, ToolError
from gloveport.host.port import Gloveport
from gloveport.policy.credentials.configured import TOKEN_SLOT
from gloveport.sources.trust import needs_trust, untrusted_error
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ADMINS, PEOPLE, ApiCall, ApiEndpoint, ApiReply, no_such
from gloveport.surfaces.sources.sign_in import SignIn, SignInOptions, declared_by

logger = logging.getLogger("gloveport")

MAX_SIGN_INS = 8
LINK_SECONDS = 60.0
_BODY = schemas.record(
    {},
    slot={"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"},
    client_id={"type": "string", "minLength": 1, "maxLength": 500},
    digest={**schemas.TEXT, "maxLength": 100, "description": "that of the server that was shown: sign in there"},
)
_STATE = schemas.found(
    state={"enum": ["none", "found", "waiting", "done", "failed"]},
    question=schemas.OPTIONAL_TEXT,
    digest=schemas.OPTIONAL_TEXT,
    issuer=schemas.OPTIONAL_TEXT,
    url=schemas.OPTIONAL_TEXT,
    problem=schemas.OPTIONAL_TEXT,
    hint=schemas.OPTIONAL_TEXT,
    command=schemas.TEXT,
)


@dataclass(slots=True)
class _UnderWay:
    """A sign-in that was started: its link, and how it ended."""

    issuer: str
    state: Literal["waiting", "done", "failed"] = "waiting"
    url: str = ""
    problem: str | None = None
    hint: str | None = None
    has_link: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class SignInsApi:
    """The sign-ins of one server, at most one for each source."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port
        self._started: dict[str, _UnderWay] = {}

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of sign-ins."""
        path = "/v1/sources/{source}/sign-in"
        return [
            ApiEndpoint("POST", path, ADMINS, "Show or start a sign-in.", self._start, {200: _STATE}, body=_BODY),
            ApiEndpoint("GET", path, PEOPLE, "Show the state of a sign-in.", self._show, {200: _STATE}),
        ]

    async def close(self) -> None:
        """End the sign-ins that are under way."""
        for one in self._started.values():
            if one.task is not None:
                one.task.cancel()

    async def _show(self, call: ApiCall) -> ApiReply:
        name = call.path["source"]
        about = self._document(name, self._started.get(name))
        # Whoever opens the link decides whose account it is: only those who may start a sign-in get it (M9).
        return ApiReply(about if call.caller.role in ADMINS else about | {"url": None})

    async def _start(self, call: ApiCall) -> ApiReply:
        name, body = call.path["source"], call.body
        config, slot, origin = self._place(name, body.get("slot", ""))
        opened = self._port.opened_source(name)
        declared = declared_by(config, opened.info if opened else None, slot) if config.kind == "openapi" else None
        sign_in = SignIn(config, slot, origin, SignInOptions(client_id=body.get("client_id")), declared=declared)
        handed_over = False
        try:
            question = await sign_in.find()
            issuer, digest = sign_in.server.issuer, sign_in.digest
            if "digest" not in body:
                found = {"state": "found", "question": question, "digest": digest, "issuer": issuer}
                return ApiReply(self._document(name, None) | found)
            if body["digest"] != digest:
                hint = "look at it again; nobody was asked to sign in"
                raise OptionError(f"the authorization server of {name} has changed", code="out-of-date", hint=hint)
            self._make_room(name)
            under_way = self._started[name] = _UnderWay(issuer)
            under_way.task = asyncio.create_task(self._run(name, sign_in, under_way))
            handed_over = True
        finally:
            if not handed_over:
                await sign_in.close()
        async with asyncio.timeout(LINK_SECONDS):
            await under_way.has_link.wait()
        return ApiReply(self._document(name, under_way))

    def _make_room(self, name: str) -> None:
        """End the sign-in that was started before; refuse one too many."""
        before = self._started.pop(name, None)
        if before is not None and before.task is not None:
            before.task.cancel()
        if sum(one.state == "waiting" for one in self._started.values()) >= MAX_SIGN_INS:
            raise OptionError(f"{MAX_SIGN_INS} sign-ins are under way", code="busy", hint="finish one first")

    async def _run(self, name: str, sign_in: SignIn, under_way: _UnderWay) -> None:
        async def show(url: str) -> None:
            under_way.url = url
            under_way.has_link.set()

        try:
            await sign_in.by_browser(show)
            await self._port.follow_settings(name)
            under_way.state = "done"
        except GloveportError as error:
            under_way.state, under_way.problem, under_way.hint = "failed", error.message, error.advice
        except Exception as error:  # the outer edge of a task: report a defect of ours without host details
            logger.error("the sign-in to %s failed", name, exc_info=error)
            under_way.state, under_way.problem = "failed", "the sign-in failed: internal error"
        finally:
            under_way.has_link.set()
            await sign_in.close()

    def _document(self, name: str, found: _UnderWay | None) -> dict[str, Any]:
        empty = dict.fromkeys(("question", "digest", "issuer", "url", "problem", "hint"))
        about: dict[str, Any] = {"ok": True, "state": "none", **empty, "command": f"gloveport auth login {name}"}
        if found is not None:
            about |= {"state": found.state, "issuer": found.issuer, "problem": found.problem, "hint": found.hint}
            about["url"] = found.url if found.state == "waiting" else None
        return about

    def _place(self, name: str, slot: str) -> tuple[SourceConfig, str, str]:
        """Return the settings of a source, the slot to fill, and the origin that gets its tokens; raise GloveportError."""
        opened = self._port.opened_source(name)
        known = next((config for config in self._port.settings.sources if config.name == name), None)
        config = known or (opened.config if opened else None)
        if config is None:
            raise no_such("source", name)
        if needs_trust(config):
            raise untrusted_error(config)
        if not isinstance(config.location, str):
            raise _no_sign_in(f"the source {name} is a command", 'give it secrets with env = { NAME = "env:OTHER" }')
        info = opened.info if opened else None
        at = config.base_url or (config.location if config.kind in ("mcp", "graphql") else info.server if info else "")
        slots = [one.name for one in info.slots] if info else []
        chosen = slot or (TOKEN_SLOT if not slots or TOKEN_SLOT in slots else slots[0] if len(slots) == 1 else "")
        if not chosen:
            raise OptionError(f"the source {name} has several credentials", hint=f"name one: {', '.join(slots)}")
        try:
            return config, chosen, urls.parse(at).origin
        except ToolError:
            problem = f"it is not known where the source {name} sends requests"
            raise _no_sign_in(problem, "set base_url in its settings") from None


def _no_sign_in(problem: str, hint: str) -> OptionError:
    """Return the error for a source whose account nobody can sign in to."""
    return OptionError(problem, code="not-found", hint=hint)
