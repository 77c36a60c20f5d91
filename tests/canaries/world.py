"""A user's machine with a secret in every place where Gloveport may hold one, or come across one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.oauth.accounts import account_value
from gloveport.policy.oauth.discovery import AuthorizationServer
from gloveport.policy.oauth.grants import OAuthClient, Tokens
from tests.canaries.secret import ODD, Canary, canary
from tests.canaries.services import WAYS, Services, definition
from tests.conftest import children_of
from tests.surfaces.command import COMMAND, REPOSITORY

HERE = Path(__file__).parent
DEADLINE = 400.0
# A secret that is sent, and the variable that it comes from.
SENT = {
    **{way: f"GLOVEPORT_API_{way.upper()}" for way in WAYS},
    "undeclared": "UNDECLARED_TOKEN",
    "graph-token": "GRAPH_TOKEN",
    "graph-header": "GRAPH_ADMIN",
    "stdio": "STDIO_TOKEN",
    "remote": "GLOVEPORT_REMOTE_TOKEN",
}
# Secrets of the environment that no source was given.
AMBIENT = {"password": "DATABASE_PASSWORD", "cloud": "AWS_SECRET_ACCESS_KEY", "other": "GLOVEPORT_NOBODY_TOKEN"}
WRITTEN = ("in-user", "in-query", "mcp-user", "mcp-query", "mcp-keyed", "from-query", "mistaken")
"""Secrets that stand in the user's own settings, where they should not: in URLs, or in place of a variable's name."""
PROVIDED = ("stored", "ring", "commanded", "access", "refresh", "client-secret", "new-access")
"""Secrets that a provider gives and that are sent: from the vault, a keyring, a command, and of an OAuth account."""
UNSENT = ("new-refresh", "vault-key")


@dataclass
class World:
    """Folders, variables and secrets; `outputs` gathers what was produced, by where it was found."""

    root: Path
    services: Services
    canaries: dict[str, Canary] = field(default_factory=dict)
    outputs: dict[str, bytes] = field(default_factory=dict)
    processes: dict[tuple[int, str], bytes] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        names = (*SENT, *AMBIENT, *WRITTEN, *PROVIDED, *UNSENT, "proxy", "netrc", "project", "command-line", "not-a-table")
        # The bearer's is also a legal name of a host, and those in URLs have to be legal there.
        odd = {*SENT, *AMBIENT} - {"bearer", "cookie"}
        self.canaries = {name: canary(name, ODD if name in odd else "-") for name in names}
        for folder in ("home", "project", "tmp", "logs", "config/gloveport", "data", "cache"):
            (self.root / folder).mkdir(parents=True)
        self.canaries["vault-key"] = canary("vault-key", "")  # exactly 32 bytes
        self._write_settings()
        self._store_credentials()
        netrc = self.root / "home" / ".netrc"
        netrc.write_text(f"machine 127.0.0.1 login ada password {self.text('netrc')}\n")
        netrc.chmod(0o600)
        self.services.on_look = self.look

    def text(self, name: str) -> str:
        """A secret."""
        return f"ada:{self.canaries[name].text}" if name == "basic" else self.canaries[name].text

    @property
    def environment(self) -> dict[str, str]:
        """The variables of every command: what it needs, where it may write, and the secrets."""
        folders = {f"XDG_{kind.upper()}_HOME": str(self.root / kind) for kind in ("config", "data", "cache")}
        proxy = f"http://ada:{self.text('proxy')}@127.0.0.1:1"
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, (HERE / "loud", REPOSITORY / "src", REPOSITORY))),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "CANARY_LOGS": str(self.root / "logs"),
            "CANARY_RING": str(self.root / "config/ring"),
            "PYTHON_KEYRING_BACKEND": "canary_keyring.Keyring",
            "GLOVEPORT_KEY": b64encode(self.text("vault-key").encode()).decode(),
            "LANG": "C.UTF-8",
            **folders,
            **{variable: self.text(name) for name, variable in {**SENT, **AMBIENT}.items()},
            **dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), proxy),
        }

    def run(self, name: str, argv: Sequence[str], stdin: bytes = b"") -> bytes:
        """Runs a command to its end, and keeps what it wrote; its standard output."""
        with self.start(argv) as process:
            out, err = process.communicate(stdin, DEADLINE)
        self.keep(name, out, err)
        return out

    def keep(self, name: str, out: bytes, err: bytes) -> None:
        """Takes what a command wrote."""
        self.outputs[f"{name}: stdout"], self.outputs[f"{name}: stderr"] = out, err

    def start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """A command in the project's folder."""
        pipe = subprocess.PIPE
        place = {"cwd": self.root / "project", "env": self.environment}
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **place)
        self.started.add(process.pid)
        return process

    def gloveport(self, name: str, *args: str, stdin: bytes = b"") -> bytes:
        """Runs `gloveport`."""
        return self.run(name, (*COMMAND, *args), stdin)

    def look(self) -> None:
        """Keeps the command line and the environment of every process below this one, as any process of a user's may."""
        with self._lock:
            for pid in children_of(os.getpid()):
                for file in ("cmdline", "environ"):
                    try:
                        self.processes[pid, file] = Path(f"/proc/{pid}/{file}").read_bytes()
                    except OSError:  # it has ended, or is not ours to read
                        continue

    def shown_by_processes(self) -> dict[str, bytes]:
        """What the kernel shows of processes, without what we gave them ourselves."""
        shown = {}
        ours = {self.processes.get((pid, "environ")) for pid in self.started}
        for (pid, file), data in self.processes.items():
            command = self.processes.get((pid, "cmdline"), b"")
            if COMMAND[-1].encode() in command and self.processes.get((pid, "environ")) in ours:
                continue  # a fork of one of them that had not yet executed anything else
            if b"config/commanded" in command and file == "environ":
                continue  # the user's own command gets the user's environment
            given = self.text("stdio").encode() if b"hostile_mcp.py" in command and file == "environ" else b"\0"
            if pid not in self.started:
                shown[f"{file} of {pid}: {command!r}"] = data.replace(given, b" ")
        return shown

    def files(self) -> dict[str, bytes]:
        """Every file that there is now, by its path."""
        found = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def mode(self, path: str) -> int:
        """Who may read a file."""
        return stat.S_IMODE((self.root / path).stat().st_mode)

    def _write_settings(self) -> None:
        origin, host = self.services.origin, self.services.origin.removeprefix("http://")
        for name in ("api", "plain"):
            (self.root / f"config/{name}.json").write_text(json.dumps(definition(schemes=name == "api")))
        api, plain = (str(self.root / f"config/{name}.json") for name in ("api", "plain"))
        server = [sys.executable, str(HERE / "hostile_mcp.py")]
        common: Mapping[str, object] = {"allow_private": True, "writes": "deny"}  # nobody is there to be asked
        sources: dict[str, Mapping[str, object]] = {
            "api": {"openapi": api, "base_url": origin, "max_response_bytes": 1_000_000},
            "undeclared": {"openapi": plain, "base_url": origin, "credentials": {"token": "env:UNDECLARED_TOKEN"}},
            "graph": {
                "graphql": f"{origin}/graphql",
                "credentials": {"token": "env:GRAPH_TOKEN", "X-Admin": "env:GRAPH_ADMIN"},
            },
            "stdio": {"mcp": server, "env": {"TOKEN": "env:STDIO_TOKEN"}, "writes": "allow"},
            "remote": {"mcp": f"{origin}/mcp", "writes": "allow"},
            "host": {"functions": str(HERE / "tools.py")},
            "stored": {"openapi": plain, "base_url": origin, "credentials": {"token": "stored:stored.token"}},
            "ring": {"openapi": plain, "base_url": origin, "credentials": {"token": "keyring:work/ada"}},
            "commanded": {
                "openapi": plain,
                "base_url": origin,
                "credentials": {"token": f"command:cat {self.root / 'config/commanded'}"},
            },
            "account": {"openapi": plain, "base_url": origin, "credentials": {"token": "stored:account.token"}},
            "in_user": {"openapi": f"http://ada:{self.text('in-user')}@{host}/openapi.json"},
            "in_query": {"graphql": f"{origin}/quietly?key={self.text('in-query')}"},
            "mcp_user": {"mcp": f"http://ada:{self.text('mcp-user')}@{host}/mcp"},
            "mcp_query": {"mcp": f"{origin}/quietly?key={self.text('mcp-query')}"},
            "mcp_keyed": {"mcp": f"{origin}/quiet?key={self.text('mcp-keyed')}", "writes": "allow"},
            "from_query": {"openapi": f"{origin}/openapi.json?key={self.text('from-query')}"},
        }
        unlabelled = {**common, "labels": ["not private", "not untrusted"]}  # else calls after the first ones ask
        _write(self.root / "config/gloveport/gloveport.toml", {name: {**unlabelled, **it} for name, it in sources.items()})
        theirs = {"untrusted": {"openapi": f"{origin}/openapi.json?key={self.text('project')}", **common}}
        _write(self.root / "project/gloveport.toml", theirs)
        wrong = f'[sources.wrong]\nopenapi = "{plain}"\ncredentials = "{self.text("not-a-table")}"\n'
        (self.root / "config/wrong.toml").write_text(wrong)
        mistaken = {"mistaken": {"openapi": plain, "credentials": {"token": self.text("mistaken")}}}
        _write(self.root / "config/mistaken.toml", mistaken)

    def _store_credentials(self) -> None:
        """Fill the vault, the keyring and the command's file. The service refuses the access token, so it is refreshed."""
        for name in ("ring", "commanded"):
            (self.root / f"config/{name}").write_text(self.text(name))
        origin = self.services.origin
        vault = Vault(self.root / "data/gloveport/credentials.json", lambda *, create: self.text("vault-key").encode())
        vault.write(StoredCredential("stored.token", "secret", (origin,), 0.0), {"secret": self.text("stored")})
        server = AuthorizationServer(origin, f"{origin}/token")
        client = OAuthClient("ada", self.text("client-secret"), "client_secret_basic")
        tokens = Tokens(self.text("access"), self.text("refresh"))
        value = account_value(server, client, tokens, grant="authorization_code", scope="", allow_private=True)
        vault.write(StoredCredential("account.token", "oauth", (origin,), 0.0, issuer=origin), value)
        self.services.refused = self.text("access")
        self.services.tokens = {"access_token": self.text("new-access"), "refresh_token": self.text("new-refresh")}


def _write(path: Path, sources: Mapping[str, Mapping[str, object]]) -> None:
    import tomlkit

    path.write_text(tomlkit.dumps({"sources": sources}))
