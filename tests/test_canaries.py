"""Secrets in every place where Gloveport holds one, real calls through every surface, and a search of all that was produced.

Threats D1 (a secret where none belongs), D2 (a service that echoes) and D3 (a secret for another origin).
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import pytest

from tests.canaries.programs import CALLS, ENDINGS, PROVIDED_SOURCES, PYTHON, TYPESCRIPT
from tests.canaries.secret import ODD, Canary, canary, leaks
from tests.canaries.services import serving
from tests.canaries.world import AMBIENT, DEADLINE, PROVIDED, SENT, UNSENT, World
from tests.surfaces.command import COMMAND, REPOSITORY

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
]  # a dozen commands and servers start first, and answer some 500 questions

TOKEN = "data/gloveport/token"
# Files in which we ourselves have written a secret: the user's own settings, and the one file that has the server's token.
OWN = {"config/gloveport/gloveport.toml", "project/gloveport.toml", "config/wrong.toml", "config/mistaken.toml"}
OWN |= {"home/.netrc", TOKEN, "config/ring", "config/commanded"}
ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in which everything has been done."""
    with serving() as services:
        made = World(tmp_path_factory.mktemp("canaries"), services)
        surfaces: list[Callable[[World], Any]] = [use_library, use_http, use_stdio, use_programs, use_tools]
        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(surface, made) for surface in surfaces]:
                done.result()
        yield made


def use_library(world: World) -> None:
    """The Python API, on every engine."""
    world.run("library", (sys.executable, "-m", "tests.canaries.library"))


def use_programs(world: World) -> None:
    """`gloveport run`."""
    given = ("--input", json.dumps(CALLS))
    world.gloveport("run", "run", "-", *given, stdin=TYPESCRIPT.encode())
    world.gloveport("run, json", "run", "-", "--language", "python", "--json", *given, stdin=PYTHON.encode())
    world.gloveport("run, failing", "run", "-e", ENDINGS[1])
    for file in ("wrong", "mistaken"):
        world.gloveport(f"run, of a {file} file", "run", "-e", "1", "--config", str(world.root / f"config/{file}.toml"))


def use_tools(world: World) -> None:
    """`gloveport tools`, and what writes files for others."""
    world.gloveport("call, failing", "tools", "call", "api.away.bearer")
    world.gloveport("call, json", "tools", "call", "remote.fail", "--json")
    world.gloveport("list", "tools", "list", "--json")
    world.gloveport("sources", "sources")
    world.gloveport("trust", "tools", "trust", "untrusted", "--yes")
    world.gloveport("auth add", "auth", "add", "stored.token", stdin=world.text("stored").encode())
    world.gloveport("auth list", "auth", "list", "--json")
    world.gloveport("auth test", "auth", "test", "account")
    world.gloveport("connect", "connect", "claude-code", "--scope", "project", "--yes")


def requests() -> list[dict[str, Any]]:
    """What a client asks an MCP server, one after the other."""
    execute = [
        (TYPESCRIPT, "typescript"),
        (PYTHON, "python"),
        *((code, "typescript") for code in (ENDINGS[1], ENDINGS[-1])),
    ]
    asked = [("search", {"query": "echo"}), ("describe", {"paths": ["stdio.echo", "mcp_user.anything", "api.echo.basic"]})]
    asked += [("execute", {"code": code, "language": language, "input": CALLS}) for code, language in execute]
    calls = [{"method": "tools/call", "params": {"name": name, "arguments": args}} for name, args in asked]
    listed = {"method": "tools/list", "params": {}}
    numbered = enumerate([{"method": "initialize", "params": ABOUT}, listed, *calls, listed])
    return [{"jsonrpc": "2.0", "id": number, **request} for number, request in numbered]


def use_stdio(world: World) -> None:
    """`gloveport mcp`, with sources that are named on its command line."""
    host, key = world.services.origin.removeprefix("http://"), world.text("command-line")
    world.gloveport("mcp, refused", "mcp", f"http://ada:{key}@{host}/mcp", "--private")
    named = (f"http://{host}/quietly?key={key}", f"http://{host}/quietly/graphql?key={key}")
    with world.start((*COMMAND, "mcp", *named, "--private")) as process:
        assert process.stdin
        assert process.stdout
        said = []
        for request in requests():
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            while json.loads(said[-1]).get("id") != request["id"] if said else True:
                said.append(process.stdout.readline())
                assert said[-1], b"".join(said).decode()
        out, err = process.communicate(timeout=DEADLINE)
    world.keep("mcp", b"".join([*said, out]), err)


def use_http(world: World) -> None:
    """`gloveport serve`: the token that it makes is a secret too."""
    with world.start((*COMMAND, "serve", "--port", "0")) as process:
        try:
            assert process.stdout
            greeting = [process.stdout.readline()]
            while not greeting[-1].endswith(b" doctor\n"):  # the last line
                assert greeting[-1], b"".join(greeting).decode()
                greeting.append(process.stdout.readline())
            url = re.search(r"http://\S+", greeting[0].decode())
            assert url
            token = (world.root / TOKEN).read_text().strip()
            replies = _converse(url[0], token)
        finally:
            process.terminate()
            out, err = process.communicate(timeout=DEADLINE)
    parts = (token[:21], token[21:])
    world.canaries["server-token"] = Canary("server-token", parts, "")
    said = b"".join([*greeting, out]).decode()
    assert said.count(token) == 1  # for who started it
    world.keep("serve", said.replace(token, "").encode(), err)
    world.outputs["serve: replies"] = b"\n".join(replies)


def _converse(url: str, token: str) -> list[bytes]:
    """What the server answers, to those with the token and to others."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    replies = []
    with httpx2.Client(headers=headers, timeout=DEADLINE, trust_env=False) as client:
        for request in requests():
            replies.append(client.post(url, json=request))
            client.headers.update({name: value for name, value in replies[-1].headers.items() if name == "mcp-session-id"})
        assert {reply.status_code for reply in replies} == {200}
        replies += [
            client.post(url, json=requests()[0], headers={"Authorization": f"Bearer {token}x"}),
            client.get(url[:-4]),
        ]
    return [repr(reply.headers).encode() + reply.content for reply in replies]


def test_no_secret_is_in_anything_that_a_command_or_the_library_says(world: World) -> None:
    assert leaks(world.outputs, world.canaries) == set()


def test_no_secret_is_in_a_file_but_where_it_was_put(world: World) -> None:
    files = world.files()
    assert leaks({path: data for path, data in files.items() if path not in OWN}, world.canaries) == set()
    assert leaks({TOKEN: files[TOKEN]}, world.canaries) == {(TOKEN, "server-token")}
    assert {world.mode(path) & 0o077 for path in files if path.startswith("data/")} == {0}


def test_no_process_shows_a_secret_that_it_was_not_given(world: World) -> None:
    shown = world.shown_by_processes()
    assert any("hostile_mcp.py" in name for name in shown)
    assert len(shown) > 10
    assert leaks(shown, world.canaries) == set()


def test_a_secret_reaches_its_own_service_and_no_other(world: World) -> None:
    theirs = {f"/{name}": {name} for name in ("header", "query", "cookie", "basic", "bearer", "oauth", "openid")}
    theirs |= {"/graphql": {"graph-token", "graph-header"}, "/mcp": {"remote"}, "/plain": {"undeclared", *PROVIDED}}
    theirs |= {"/token": {"refresh", "client-secret"}}
    seen: set[str] = set()
    for number, request in enumerate(world.services.received):
        path = urlsplit(request.split(b" ", 2)[1].decode()).path
        found = {name for _, name in leaks({str(number): request}, world.canaries)}
        seen |= found
        if not path.startswith(("/echo/back", "/quiet", "/openapi.json")):
            assert found <= theirs[path[path.rindex("/") :]], path
    assert {*SENT, *PROVIDED} - {"stdio"} <= seen
    assert sum(request.startswith(b"POST /token ") for request in world.services.received) == 1  # by one process for all
    assert not seen & {*AMBIENT, *UNSENT, "proxy", "netrc", "stdio", "mistaken", "server-token"}


def test_everything_was_tried(world: World) -> None:
    """What the other tests search is what they mean: each source was called, and each failure happened."""
    assert (len(world.canaries), len(world.started)) == (37, 18)  # as the specification says
    library = world.outputs["library: stdout"].decode()
    for source in (
        "api.header",
        "api.basic",
        "undeclared.token",
        "graph.token",
        "graph.X-Admin",
        "stdio.TOKEN",
        "remote.token",
        *(f"{source}.token" for source in PROVIDED_SOURCES),
    ):
        assert f"•••({source})" in library, source
    codes = (
        "http-error",
        "denied",
        "bad-arguments",
        "source-timeout",
        "source-unreachable",
        "reply-too-large",
        "egress-denied",
    )
    for code in (*codes, "graphql-error", "source-failed", "tool-failed"):
        assert f"ended with {code}" in library, code
    for surface in ("run: stdout", "run, json: stdout", "mcp: stdout", "serve: replies", "call, json: stdout"):
        assert "•••(" in world.outputs[surface].decode(), surface
    assert b"wrong password" not in world.outputs["mcp: stdout"]
    assert any(path.startswith("logs/") and b"DEBUG" in data for path, data in world.files().items())


SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "in a URL": lambda text: quote(text, safe="").encode(),
    "in JSON": lambda text: json.dumps(text).encode(),
    "in HTML": lambda text: html.escape(text).encode(),
    "in base64": lambda text: b64encode(text.encode()),
    "in base64 after a word": lambda text: b64encode(f"Bearer {text}".encode()),
    "in URL-safe base64, cut": lambda text: b64encode(f"x{text}".encode(), b"-_")[2:-9],
    "in hex": lambda text: text.encode().hex().upper().encode(),
    "in UTF-16": lambda text: text.encode("utf-16"),
    "backwards": lambda text: text[::-1].encode(),
    "half of it": lambda text: text[: len(text) // 2].encode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("between", ["-", ODD])
def test_a_planted_leak_is_found(world: World, spelling: str, between: str) -> None:
    planted, other = canary("planted", between), canary("other")
    log = world.root / "logs" / "planted.log"
    log.write_bytes(b"before " + SPELLINGS[spelling](planted.text) + b" after")
    try:
        assert leaks(world.files(), {"planted": planted, "other": other}) == {("logs/planted.log", "planted")}
    finally:
        log.unlink()


def test_a_secret_on_a_command_line_or_in_an_environment_is_found(world: World) -> None:
    planted = canary("planted")
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()", planted.text]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env={"SECRET": planted.text}) as process:
        # The kernel shows the new program's command line as soon as Popen has returned: exec has happened.
        world.look()
        process.communicate(b"")
    found = leaks(world.shown_by_processes(), {"planted": planted})
    assert {where.partition(" ")[0] for where, _ in found} == {"cmdline", "environ"}


LEAKING = """
import os, subprocess, sys
from base64 import b64encode
from gloveport.policy.credentials import Secret
from gloveport.policy.credentials.vault import StoredCredential, Vault

TELLS = "from gloveport.policy.credentials import Secret; Secret({!r}, 'printed.token'); print({!r})"

def test_files(tmp_path):
    Secret("harmless-8f1d20c7b95e", "kept.token")
    Secret("written-41c07ae29d53", "written.token")
    (tmp_path / "log").write_bytes(b"x" + b64encode(b"Bearer written-41c07ae29d53"))

def test_output():
    secret = "printed-6b2f90d4e17a"
    subprocess.run([sys.executable, "-c", TELLS.format(secret, secret[::-1])], capture_output=True, check=True)

def test_provider(tmp_path, capsys):
    vault = Vault(tmp_path / "credentials.json", lambda *, create: bytes(32))
    vault.write(StoredCredential("sealed.token", "secret", ("https://a.test",), 0.0), {"secret": "sealed-93ce5d08f4b1"})
    print("sealed-93ce5d08f4b1".encode().hex())
"""


def test_a_leak_of_any_test_is_found(tmp_path: Path) -> None:
    """What `make canaries` searches, and that it fails."""
    file = tmp_path / "test_leaking.py"
    file.write_text(LEAKING)
    options = ("--canaries", "-c", "pyproject.toml", "-p", "tests.conftest", "--basetemp", str(tmp_path / "base"))
    argv = [sys.executable, "-m", "pytest", *options, str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=REPOSITORY, timeout=DEADLINE, check=False)
    found = {tuple(line.split(" ")[1::2]) for line in done.stdout.splitlines() if line.startswith("LEAKED: ")}
    labels = {label for label, _ in found}
    assert labels == {"written.token", "printed.token", "sealed.token"}, done.stdout + done.stderr
    assert "4 secrets of 4 were searched for" in done.stdout
    assert "3 passed" in done.stdout and done.returncode == 1


def test_the_searched_folders_are_those_that_are_used(world: World) -> None:
    made = {path.split("/")[0] for path in world.files()}
    assert {"data", "cache", "logs", "project"} <= made
    assert Path(world.environment["HOME"]).is_dir()
