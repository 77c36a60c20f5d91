"""`gloveport connect`: shows the change to a client's configuration, backs the file up and writes the entry."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.config import load_config
from gloveport.errors import GloveportError, OptionError
from gloveport.sources.detection import check
from gloveport.surfaces.cli.connect.entries import with_entry
from gloveport.surfaces.cli.view import OutputOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import FileChange, ask, read_text
from gloveport.surfaces.http import DEFAULT_URL
from gloveport.surfaces.http.token import own_token_file
from gloveport.surfaces.mcp_clients import (
    CLIENTS,
    SERVER_NAME,
    TOKEN_VARIABLE,
    Client,
    Scope,
    ServerCommand,
    secret_variables,
    served_url,
)
from gloveport.surfaces.own_command import as_typed, own_command
from gloveport.surfaces.terminal import Stream


@dataclass(frozen=True, slots=True)
class ConnectOptions(OutputOptions):
    """The command line of `gloveport connect`, not yet checked."""

    client: str
    sources: tuple[str, ...]
    scope: Scope
    only_print: bool
    http: bool
    url: str | None
    env: tuple[str, ...]
    yes: bool


def connect_command(options: ConnectOptions) -> int:
    """Connect a client and return the exit code."""
    if options.sources and (options.http or options.url):
        raise OptionError("a running server has its own sources", hint="give them to `gloveport serve`")
    err = options.err
    client = CLIENTS[options.client]
    server = served_url(options.url or DEFAULT_URL) if options.http or options.url else _start(options)
    entry = client.entry(server)
    path = client.place(options.scope, Path.cwd()).path
    about: dict[str, Any] = {"client": options.client, "scope": options.scope, "file": str(path), "entry": entry}
    warnings = _warnings(options, client, server)
    if options.only_print:
        return _print(options, client, about, warnings)
    try:
        change, had = _change(client, options.scope, entry)
    except GloveportError as error:
        if not options.as_json:
            err.write(f"{client.title} reads this from {path}:\n\n{client.snippet(entry)}\n")
        hint = "add the entry by hand (`--print` shows it alone); nothing was changed"
        raise OptionError(f"{path} can't be changed safely: {error.message}", hint=hint, data=about) from None
    backup = None
    if change is not None:
        if not options.as_json:
            change.show(err)
        if had:
            ask(f"{path} has another `{SERVER_NAME}`. Replace it?", err, yes=options.yes, as_json=options.as_json)
        backup = change.back_up()
        change.make(mode=0o600 if options.scope == "user" else 0o644)
    if options.as_json:
        about |= {"changed": change is not None, "backup": str(backup) if backup else None, "warnings": warnings}
        write_document(options.out, {"ok": True, **about})
    else:
        _report(err, client, path, backup, warnings, changed=change is not None)
    return 0


def _print(options: ConnectOptions, client: Client, about: Mapping[str, Any], warnings: list[str]) -> int:
    snippet = client.snippet(about["entry"])
    if options.as_json:
        about = {**about, "changed": False, "backup": None, "warnings": warnings, "snippet": snippet}
        write_document(options.out, {"ok": True, **about})
    else:
        err = options.err
        err.line(err.paint(f"{client.title} reads this from {about['file']}", "dim"))
        options.out.write(snippet)
        _warn(err, warnings)
    return 0


def _report(err: Stream, client: Client, path: Path, backup: Path | None, warnings: list[str], *, changed: bool) -> None:
    if changed:
        err.line(f"{err.paint('✓', 'green')} {client.title} is connected: {path}")
    else:
        err.line(f"{err.paint('✓', 'green')} {client.title} is connected already; nothing was changed")
    if backup:
        err.line(f"  backup of the old file: {backup}")
    _warn(err, warnings)
    err.line(f"  next: {client.reload}")


def _warn(err: Stream, warnings: list[str]) -> None:
    for warning in warnings:
        first, *commands = f"  {err.paint('!', 'yellow')} {as_typed(warning)}".split("\n")
        err.line("\n".join((err.fold(first, " " * 4), *commands)))  # a command is pasted as one line


# The server in the entry.


def _start(options: ConnectOptions) -> ServerCommand:
    """Return the command that the client starts.

    A project's file is shared, so it has the command's name. A user's own file has its whole path, because a client that
    was started from a desktop does not know the shell's PATH.
    """
    for name in options.env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            shown = f"{name.partition('=')[0]}=…" if "=" in name else name
            hint = "give the name, not the value: --env NAME"
            raise OptionError(f"--env {shown!a} is not the name of a variable", hint=hint)
    env = tuple(dict.fromkeys((*options.env, *secret_variables(load_config()))))
    for text in options.sources:
        check(text)
    if options.scope == "project":
        return ServerCommand(SERVER_NAME, ("mcp", *options.sources), env)
    command, *args = own_command()
    return ServerCommand(command, (*args, "mcp", *map(_anywhere, options.sources)), env)


def _anywhere(source: str) -> str:
    """Return a source as it is named from any folder."""
    path = os.path.expanduser(source)
    return os.path.realpath(path) if "://" not in source and os.path.isfile(path) else source


def _warnings(options: ConnectOptions, client: Client, server: ServerCommand | str) -> list[str]:
    if isinstance(server, str):
        export = f'export {TOKEN_VARIABLE}="$(cat {shlex.quote(str(own_token_file()))})"'
        return [f"set {TOKEN_VARIABLE} for the client; `gloveport serve` creates the file:\n    {export}"]
    found: list[str] = []
    if not options.sources and not load_config().sources:
        hint = (
            f"`gloveport add --help` shows how to add one, or name one here: `gloveport connect {options.client} tools.py`"
        )
        found.append(f"no sources are configured, so the agent gets no tools: {hint}")
    if server.env and client.reference is None:
        found.append(f"{client.title} passes on what it was started with: start it where {', '.join(server.env)} is set")
    if options.scope == "project" and shutil.which(SERVER_NAME) is None:
        found.append(f"the command `{SERVER_NAME}` is not on your PATH, but the project's file starts it by that name")
    return found


# The client's file.


def _change(client: Client, scope: Scope, entry: Mapping[str, Any]) -> tuple[FileChange | None, bool]:
    """Return the change (None if the entry is there already) and whether it replaces an entry; raise if it is not safe."""
    place = client.place(scope, Path.cwd())
    path = place.path.resolve()
    if not path.is_relative_to(place.within.resolve()):
        raise OptionError(f"it is a link that leads out of {place.within}, to {path}")
    text = read_text(path)
    changed, had = with_entry(text or "", client.format, (client.servers, SERVER_NAME), entry)
    return (FileChange(path, text, changed) if changed != text else None), had
