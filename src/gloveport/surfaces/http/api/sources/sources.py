"""The endpoints of sources: those that there are, and changes of the settings file that add and remove some.

A change is made in two steps, as on the command line: the first shows it, with a digest; the same request with that digest
makes exactly it. To open a command or a Python file is to run it, so it has a step of its own before (M6, M16).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gloveport.catalog import Catalog
from gloveport.errors import OptionError
from gloveport.host.pinning import current_definition
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.sources.trust import what_it_does
from gloveport.surfaces.file_change import FileChange
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ADMINS, EVERYBODY, PEOPLE, ApiCall, ApiEndpoint, ApiReply, no_such
from gloveport.surfaces.settings import chosen_file, settings_files
from gloveport.surfaces.sources.addition import SourceAddition, WantedSource
from gloveport.surfaces.sources.credential_rows import credential_rows, is_service
from gloveport.surfaces.sources.removal import file_with, without_source
from gloveport.surfaces.sources.source_rows import all_rows

_TEXT: schemas.Schema = {"type": "string", "minLength": 1, "maxLength": 4000}
_NAME: schemas.Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "format": "source-name",
    "description": "an identifier that Gloveport does not use itself",
}
_FILE: schemas.Schema = {"enum": ["project", "user"], "description": "which settings; the project's if there are any"}
_DIGEST: schemas.Schema = {**schemas.TEXT, "maxLength": 200, "description": "that of what was shown: go on with it"}
_ONLY_MCP: schemas.Schema = {
    "if": {"properties": {"trust_annotations": {"const": True}}, "required": ["trust_annotations"]},
    "then": {"properties": {"kind": {"const": "mcp"}}},
}
_ADD: schemas.Schema = {
    **schemas.record(
        {"what": {**_TEXT, "description": "a URL, a file, or the command of an MCP server"}},
        name=_NAME,
        kind={"type": "string", "maxLength": 32},
        base_url={"type": "string", "minLength": 1, "maxLength": 2000},
        allow_private={**schemas.FLAG, "default": False},
        writes={**schemas.FLAG, "default": False, "description": "allow the tools that write"},
        trust_annotations={**schemas.FLAG, "default": False},
        file=_FILE,
        digest=_DIGEST,
    ),
    "allOf": [_ONLY_MCP],
}
_REMOVE = schemas.record({}, file=_FILE, digest=_DIGEST)
_CREDENTIAL = schemas.record(
    {"slot": schemas.TEXT, "kind": schemas.TEXT, "from": schemas.TEXT, "command": schemas.TEXT, "account": schemas.FLAG},
    state={"enum": ["ready", "missing", "expired", "sign-in-needed", "external"]},
    issuer=schemas.OPTIONAL_TEXT,
    days={"type": ["integer", "null"]},
    variable=schemas.OPTIONAL_TEXT,
)
_SOURCE = schemas.record(
    {
        "name": schemas.TEXT,
        "state": {"enum": ["open", "opening", "broken", "untrusted"]},
        "tools": schemas.COUNT,
        "writes": schemas.COUNT,
        "problem": schemas.OPTIONAL_TEXT,
    },
    kind=schemas.TEXT,
    location=schemas.TEXT,
    file=schemas.OPTIONAL_TEXT,
    suspended=schemas.COUNT,
    hint=schemas.OPTIONAL_TEXT,
    warnings=schemas.rows(schemas.TEXT),
    credentials=schemas.rows(_CREDENTIAL),
    account={**schemas.FLAG, "description": "whether its service may want a sign-in"},
)
_CHANGE_PARTS = {
    "file": schemas.TEXT,
    "diff": schemas.rows(schemas.TEXT),
    "digest": schemas.TEXT,
    "made": schemas.FLAG,
    "live": {**schemas.FLAG, "description": "whether this server follows the change now"},
}
_ADDED: schemas.Schema = {
    "type": "object",
    "required": ["ok", "source", "opened", "does", "argv", "sign_in", *_CHANGE_PARTS],
    "properties": {"ok": {"const": True}, "source": {"type": "object"}, "opened": schemas.FLAG, **_CHANGE_PARTS},
}


class SourcesApi:
    """The sources of one port. Agents see the names of theirs; people also what is wrong; an admin changes them."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port
        self._changing = asyncio.Lock()  # one change at a time: each begins with the file as it is

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of sources."""
        listed = {200: schemas.found(sources=schemas.rows(_SOURCE))}
        removed = {200: schemas.found(source=schemas.TEXT, **_CHANGE_PARTS)}
        one, path = {200: schemas.found(source=_SOURCE)}, "/v1/sources/{source}"
        empty = schemas.record({})
        return [
            ApiEndpoint("GET", "/v1/sources", EVERYBODY, "List the sources.", self._list, listed),
            ApiEndpoint("POST", "/v1/sources", ADMINS, "Show or add a source.", self._add, {200: _ADDED}, body=_ADD),
            ApiEndpoint("GET", path, PEOPLE, "Show a source.", self._get, one),
            ApiEndpoint("POST", f"{path}/refresh", ADMINS, "Open a source again.", self._refresh, one, body=empty),
            ApiEndpoint("POST", f"{path}/remove", ADMINS, "Show or remove one.", self._remove, removed, body=_REMOVE),
        ]

    async def _list(self, call: ApiCall) -> ApiReply:
        if call.caller.role in ("agent", "host"):
            catalog = await self._port.catalog_of(call.caller.name)
            return ApiReply({"ok": True, "sources": [_agent_row(catalog, one.name) for one in catalog.sources]})
        return ApiReply({"ok": True, "sources": await off_loop(self._rows)})

    def _rows(self) -> list[dict[str, Any]]:
        settings = self._port.settings
        known = {config.name: config for config in settings.sources}
        rows = all_rows(self._port, settings)
        for row in rows:
            opened = self._port.opened_source(row["name"])
            config = known.get(row["name"]) or (opened.config if opened else None)
            problem = next((one for one in self._port.problems if one.source == row["name"] and one.broken), None)
            needs = problem is not None and problem.code == "auth-required"
            info = opened.info if opened else None
            row["credentials"] = credential_rows(config, info, needs_sign_in=needs) if config else []
            row["account"] = bool(config and is_service(config)) or any(one["account"] for one in row["credentials"])
        return rows

    async def _row(self, name: str) -> dict[str, Any]:
        found = next((row for row in await off_loop(self._rows) if row["name"] == name), None)
        if found is None:
            raise no_such("source", name)
        return found

    async def _get(self, call: ApiCall) -> ApiReply:
        return ApiReply({"ok": True, "source": await self._row(call.path["source"])})

    async def _refresh(self, call: ApiCall) -> ApiReply:
        name = call.path["source"]
        await self._row(name)
        async with self._changing:
            await self._port.follow_settings(name)
        return ApiReply({"ok": True, "source": await self._row(name)})

    async def _add(self, call: ApiCall) -> ApiReply:
        body, settings = call.body, self._port.settings
        path = chosen_file(settings, body.get("file"))
        async with self._changing:
            # A project's file that was found, not named, is untrusted: its source is trusted with these settings alone.
            addition = SourceAddition(settings, str(path) if path == settings.project else "")
            try:
                return ApiReply({"ok": True, **await self._added(addition, path, body)})
            finally:
                await addition.close()

    async def _added(self, addition: SourceAddition, path: Path, body: Any) -> dict[str, Any]:
        flags = (body.get(name, False) for name in ("allow_private", "writes", "trust_annotations"))
        await addition.detect(
            WantedSource((body["what"].strip(),), body.get("name"), body.get("kind"), body.get("base_url"), *flags)
        )
        self._check_name(addition.config.name)
        change = await off_loop(addition.change, path)
        shown, given = _digest(change, asdict(addition.config)), body.get("digest", "")
        if given and given.partition(".")[0] != shown:
            raise _out_of_date(path)
        if not addition.runs_code or given:
            await addition.open()
            shown = f"{shown}.{await off_loop(_definition_digest, addition)}"
        made = "." in given
        if made:
            if given != shown:
                raise _out_of_date(path)
            await addition.make(change)
            await self._port.follow_settings()
        config = addition.config
        return {
            "source": addition.about if addition.opened or addition.sign_in else _unseen(addition),
            "opened": addition.opened is not None,
            "does": what_it_does(config),
            "argv": list(addition.argv) if addition.argv is not None else None,
            "sign_in": addition.sign_in or None,
            **_change_document(change, shown, made=made, live=made and self._knows(config.name)),
        }

    def _check_name(self, name: str) -> None:
        if self._knows(name) and all(config.name != name for config in self._port.settings.sources):
            raise OptionError(f"this server already has a source `{name}`", hint="choose another name")

    def _knows(self, name: str) -> bool:
        return name in {one.name for one in self._port.catalog.sources} | {one.source for one in self._port.problems}

    async def _remove(self, call: ApiCall) -> ApiReply:
        name, body = call.path["source"], call.body
        async with self._changing:
            files = settings_files(self._port.settings)
            chosen = {each: path for each, path in files.items() if body.get("file", each) == each}
            path = await off_loop(lambda: file_with(name, chosen, "choose one with `file`"))
            change = await off_loop(without_source, path, name)
            shown, given = _digest(change, {}), body.get("digest")
            if given is not None:
                if given != shown:
                    raise _out_of_date(path)
                await off_loop(change.make)
                await self._port.follow_settings()
        made = given is not None
        parts = _change_document(change, shown, made=made, live=made and not self._knows(name))
        return ApiReply({"ok": True, "source": name, **parts})


def _agent_row(catalog: Catalog, name: str) -> dict[str, Any]:
    tools = [tool for tool in catalog.tools if tool.source == name]
    writes = sum(tool.writes for tool in tools)
    return {"name": name, "state": "open", "tools": len(tools), "writes": writes, "problem": None}


def _unseen(addition: SourceAddition) -> dict[str, Any]:
    """Return what is known about a source that was not started."""
    config = addition.config
    return {
        "name": config.name,
        "kind": config.kind,
        "title": config.name,
        "credentials": [],
        "warnings": [],
        "examples": [],
    }


def _digest(change: FileChange, about: Any) -> str:
    parts = str(change.path), change.before or "", change.after, json.dumps(about, sort_keys=True, default=list)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _definition_digest(addition: SourceAddition) -> str:
    if addition.opened is None:
        return "unopened"
    found = current_definition(addition.opened)
    stated = [found.digest, *(f"{address} {digest}" for address, digest in sorted(found.tools.items()))]
    return hashlib.sha256("\n".join(stated).encode()).hexdigest()


def _change_document(change: FileChange, digest: str, *, made: bool, live: bool) -> dict[str, Any]:
    return {"file": str(change.path), "diff": change.diff, "digest": digest, "made": made, "live": live}


def _out_of_date(path: Path) -> OptionError:
    hint = "look at it again; nothing was changed"
    return OptionError(f"{path} or the source is not as it was when you saw it", code="out-of-date", hint=hint)
