"""The MCP clients that we know: the file of each, and how it writes a server.

Secrets stay in the environment: the clients refer to a variable, each with a syntax of its own, or pass all of theirs on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import tomlkit

from gloveport.config import Config
from gloveport.errors import OptionError
from gloveport.policy.credentials.environment import default_variable
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.http import DEFAULT_URL

SERVER_NAME = "gloveport"
TOKEN_VARIABLE = "GLOVEPORT_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
Scope = Literal["user", "project"]
Format = Literal["json", "toml"]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A server that the client starts on stdio; `env` names the variables that it needs from the client's environment."""

    command: str
    args: tuple[str, ...]
    env: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's configuration file, and the folder that a link in its path must not leave."""

    path: Path
    within: Path


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    `servers` is the key of its table of servers. `project` is its file in a project, `user` returns its file for a user.
    `reference` is how it refers to the variable NAME; a client without one takes values as they are written, and passes its
    whole environment to the servers that it starts. `reload` says how it loads a change. `typed` are its values of `type`
    for a server on stdio and over HTTP. `url` is its key of a server's URL.
    """

    title: str
    servers: str
    project: str
    user: Callable[[], ClientFile]
    reference: str | None
    reload: str
    format: Format = "json"
    typed: tuple[str | None, str | None] = (None, None)
    url: str = "url"

    def place(self, scope: Scope, folder: Path) -> ClientFile:
        """Return the file for this scope; `folder` is the project's."""
        return self.user() if scope == "user" else ClientFile(folder / self.project, folder)

    def entry(self, server: ServerCommand | str) -> dict[str, Any]:
        """Return the entry for a server: a command to start, or a URL. Raise where a URL's token would be in the file."""
        kind = self.typed[isinstance(server, str)]
        entry: dict[str, Any] = {"type": kind} if kind else {}
        if isinstance(server, str):
            return entry | {self.url: server} | self._authorization()
        return entry | {"command": server.command, "args": list(server.args)} | self._environment(server.env)

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the text of a file that has this entry alone."""
        whole = {self.servers: {SERVER_NAME: entry}}
        return tomlkit.dumps(whole) if self.format == "toml" else to_text(whole, indented=True) + "\n"

    def _authorization(self) -> dict[str, Any]:
        if self.format == "toml":
            return {"bearer_token_env_var": TOKEN_VARIABLE}
        if self.reference is None:
            hint = "leave `--http` out: it then starts `gloveport mcp` itself, which needs no token"
            raise OptionError(f"{self.title} can't read a token from a variable: it would be in the file", hint=hint)
        return {"headers": {"Authorization": f"Bearer {self.reference.replace('NAME', TOKEN_VARIABLE)}"}}

    def _environment(self, names: Sequence[str]) -> dict[str, Any]:
        reference = self.reference
        if not names or reference is None:
            return {}
        if self.format == "toml":
            return {"env_vars": list(names)}
        return {"env": {name: reference.replace("NAME", name) for name in names}}


def served_url(url: str) -> str:
    """Return the URL of a server; raise OptionError for one that is none, or to which a token would go in clear text."""
    wrong = OptionError(f"{url!a} is not the URL of a server", hint=f"write it like {DEFAULT_URL}")
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.port == 0:
            raise wrong
    except ValueError:
        raise wrong from None
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise OptionError(f"{url} would send the token in clear text", hint="use https to reach another machine")
    return url


def secret_variables(settings: Config) -> list[str]:
    """Return the variables from which the sources read secrets: clients pass on only the variables that they list."""
    names: list[str] = []
    for source in settings.sources:
        names += [origin.removeprefix("env:") for origin in source.credentials.values() if origin.startswith("env:")]
        names += sorted(name for name in os.environ if name.startswith(default_variable(source.name, "")))
    return names


def _at_home(*parts: str) -> ClientFile:
    home = Path.home()
    return ClientFile(home.joinpath(*parts), home)


def _claude() -> ClientFile:
    return _chosen("CLAUDE_CONFIG_DIR", ".claude.json") or _at_home(".claude.json")


def _codex() -> ClientFile:
    return _chosen("CODEX_HOME", "config.toml") or _at_home(".codex", "config.toml")


def _vscode() -> ClientFile:
    if sys.platform == "darwin":
        return _at_home("Library", "Application Support", "Code", "User", "mcp.json")
    return _chosen("XDG_CONFIG_HOME", "Code/User/mcp.json") or _at_home(".config", "Code", "User", "mcp.json")


def _zed() -> ClientFile:
    chosen = None if sys.platform == "darwin" else _chosen("XDG_CONFIG_HOME", "zed/settings.json")
    return chosen or _at_home(".config", "zed", "settings.json")


def _chosen(variable: str, name: str) -> ClientFile | None:
    folder = os.environ.get(variable, "")
    return ClientFile(Path(folder) / name, Path(folder)) if os.path.isabs(folder) else None


CLIENTS: Mapping[str, Client] = {
    # With `:-` an unset variable is empty; without it Claude Code passes the text `${NAME}` on as if it were the secret.
    "claude-code": Client(
        "Claude Code", "mcpServers", ".mcp.json", _claude, "${NAME:-}", "restart it, then look at /mcp",
        typed=("stdio", "http"),
    ),
    "cursor": Client(
        "Cursor", "mcpServers", ".cursor/mcp.json", lambda: _at_home(".cursor", "mcp.json"), "${env:NAME}",
        "restart it, then look at Settings, MCP", typed=("stdio", None),
    ),
    "vscode": Client(
        "VS Code", "servers", ".vscode/mcp.json", _vscode, "${env:NAME}", "run `MCP: List Servers` and start it",
        typed=("stdio", "http"),
    ),
    "codex": Client(
        "Codex", "mcp_servers", ".codex/config.toml", _codex, "NAME", "restart it, then look at /mcp", format="toml",
    ),
    "gemini": Client(
        "Gemini CLI", "mcpServers", ".gemini/settings.json", lambda: _at_home(".gemini", "settings.json"), "$NAME",
        "restart it, then look at /mcp", url="httpUrl",
    ),
    "zed": Client(
        "Zed", "context_servers", ".zed/settings.json", _zed, None, "look at `agent: open settings` in the command palette",
    ),
}  # fmt: skip
