"""The endpoints for editors of programs: what is wrong with one, what can follow at a place of it, and examples."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gloveport.catalog.completion import complete
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import AGENTS, EVERYBODY, ApiCall, ApiEndpoint, ApiReply, forbidden, no_such
from gloveport.surfaces.http.api.programs.example_programs import examples_for
from gloveport.types import DEFAULT_AGENT

_LANGUAGE = {"enum": ["typescript", "javascript", "python"], "default": "typescript"}
_AGENT = {**schemas.TEXT, "maxLength": 64, "description": "the agent that would run it; only an admin may name one"}
_CHECK = schemas.record({"code": schemas.TEXT}, language=_LANGUAGE, agent=_AGENT)
_COMPLETE = schemas.record(
    {
        "code": schemas.TEXT,
        "offset": {**schemas.COUNT, "description": "where the cursor is, in UTF-16 code units, as editors count"},
    },
    language=_LANGUAGE,
    agent=_AGENT,
)
_PROBLEM = schemas.record(
    {
        "line": schemas.COUNT,
        "column": schemas.COUNT,
        "message": schemas.TEXT,
        "code": schemas.TEXT,
        "hint": schemas.OPTIONAL_TEXT,
        "stops": schemas.FLAG,
    }
)
_OPTION = schemas.record(
    {
        "label": schemas.TEXT,
        "kind": {"enum": ["namespace", "tool", "argument", "value"]},
        "insert": schemas.TEXT,
        "detail": schemas.TEXT,
        "info": schemas.TEXT,
    }
)
_EXAMPLE = schemas.record({"name": schemas.TEXT, "title": schemas.TEXT, "language": schemas.TEXT, "code": schemas.TEXT})


class ProgramsApi:
    """What an editor needs to know about a program. Nothing here runs one."""

    def __init__(self, port: Gloveport, admission: Admission) -> None:
        self._port = port
        self._admission = admission

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of programs."""
        problems = {200: schemas.found(problems=schemas.rows(_PROBLEM))}
        completed = {200: schemas.found(start=schemas.COUNT, options=schemas.rows(_OPTION))}
        examples = {200: schemas.found(examples=schemas.rows(_EXAMPLE))}
        return [
            ApiEndpoint("POST", "/v1/check", AGENTS, "Check a program.", self._check, problems, body=_CHECK),
            ApiEndpoint("POST", "/v1/complete", AGENTS, "Complete a program.", self._complete, completed, body=_COMPLETE),
            ApiEndpoint("GET", "/v1/examples", EVERYBODY, "List example programs.", self._examples, examples),
        ]

    async def _check(self, call: ApiCall) -> ApiReply:
        agent = self._agent(call)
        async with self._admission.run_slot(call.caller.name):  # a check computes like a small run
            found = await self._port.check(call.body["code"], _language(call), agent)
        return ApiReply({"ok": True, "problems": [asdict(one) for one in found]})

    async def _complete(self, call: ApiCall) -> ApiReply:
        code = call.body["code"]
        units = min(call.body["offset"], _units(code))
        offset = _characters(code, units)
        catalog = await self._port.catalog_of(self._agent(call))
        found = await off_loop(complete, catalog, code, offset, _language(call))
        if found is None:
            return ApiReply({"ok": True, "start": units, "options": []})
        start = units - _units(code[found.start : offset])
        return ApiReply({"ok": True, "start": start, "options": [asdict(one) for one in found.options]})

    async def _examples(self, call: ApiCall) -> ApiReply:
        agent = call.caller.name if call.caller.runs_programs else DEFAULT_AGENT
        catalog = await self._port.catalog_of(agent)
        return ApiReply({"ok": True, "examples": [asdict(one) for one in examples_for(catalog)]})

    def _agent(self, call: ApiCall) -> str:
        """Return the agent whose tools count: the caller, or for an admin the one that it names."""
        named = call.body.get("agent")
        if call.caller.role == "admin":
            try:
                return self._port.agent(named or DEFAULT_AGENT).name
            except OptionError:
                raise no_such("agent", str(named)) from None
        if named not in (None, call.caller.name):
            raise forbidden("only an admin may name an agent")
        return call.caller.name


def _language(call: ApiCall) -> Any:
    return call.body.get("language", "typescript")


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _characters(code: str, units: int) -> int:
    """Return the offset in characters of an offset in UTF-16 code units."""
    if code.isascii():
        return min(units, len(code))
    return len(code.encode("utf-16-le", "surrogatepass")[: units * 2].decode("utf-16-le", "replace"))
