"""What MCP clients need to reach this server: the text of each client's configuration, as `gloveport connect` writes it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.surfaces.http import MCP_PATH
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import PEOPLE, ApiCall, ApiEndpoint, ApiReply
from gloveport.surfaces.http.token import own_token_file
from gloveport.surfaces.mcp_clients import (
    CLIENTS,
    TOKEN_VARIABLE,
    Client,
    Scope,
    ServerCommand,
    secret_variables,
    served_url,
)
from gloveport.surfaces.own_command import own_command, typed_command

_SCOPES: tuple[Scope, ...] = ("user", "project")
_FORM = schemas.record({"snippet": schemas.OPTIONAL_TEXT, "problem": schemas.OPTIONAL_TEXT, "hint": schemas.OPTIONAL_TEXT})
_CLIENT = schemas.record(
    {"client": schemas.TEXT, "title": schemas.TEXT, "reload": schemas.TEXT, "http": _FORM, "stdio": _FORM},
    format={"enum": ["json", "toml"]},
    files=schemas.record(dict.fromkeys(_SCOPES, schemas.TEXT)),
    command=schemas.TEXT,
)
_FOUND = schemas.found(clients=schemas.rows(_CLIENT), variable=schemas.TEXT, export=schemas.OPTIONAL_TEXT, url=schemas.TEXT)


class ClientsApi:
    """The card that connects a client. It holds no secret: the token comes from the environment of the client."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoint of clients."""
        query = {"origin": {**schemas.TEXT, "maxLength": 300, "description": "where this server is, as the client sees it"}}
        summary = "Show how MCP clients connect."
        return [ApiEndpoint("GET", "/v1/clients", PEOPLE, summary, self._list, {200: _FOUND}, query=query)]

    async def _list(self, call: ApiCall) -> ApiReply:
        origin = call.query.get("origin") or f"http://{call.headers.get('host', '')}"
        return ApiReply({"ok": True, **await off_loop(self._found, f"{origin.rstrip('/')}{MCP_PATH}")})

    def _found(self, url: str) -> dict[str, Any]:
        command, *args = own_command()
        started = ServerCommand(command, (*args, "mcp"), tuple(dict.fromkeys(secret_variables(self._port.settings))))
        token = own_token_file()
        export = f'export {TOKEN_VARIABLE}="$(cat {shlex.quote(str(token))})"' if token.exists() else None
        clients = [_row(name, client, url, started) for name, client in CLIENTS.items()]
        return {"clients": clients, "variable": TOKEN_VARIABLE, "export": export, "url": url}


def _row(name: str, client: Client, url: str, started: ServerCommand) -> dict[str, Any]:
    return {
        "client": name,
        "title": client.title,
        "reload": client.reload,
        "format": client.format,
        "files": {"user": str(client.place("user", Path()).path), "project": client.project},
        "http": _form(client, url),
        "stdio": _form(client, started),
        "command": f"{typed_command()} connect {name} --url {url}",
    }


def _form(client: Client, server: ServerCommand | str) -> dict[str, Any]:
    try:
        entry = client.entry(served_url(server) if isinstance(server, str) else server)
    except OptionError as error:
        return {"snippet": None, "problem": error.message, "hint": error.hint}
    return {"snippet": client.snippet(entry), "problem": None, "hint": None}
