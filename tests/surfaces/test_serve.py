"""`gloveport mcp` and `gloveport serve` as processes: start, output and stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from gloveport.errors import OptionError
from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS
from gloveport.surfaces.http.server import listen
from gloveport.surfaces.http.token import own_token, own_token_file, read_token
from tests.surfaces.command import (
    COMMAND,
    DEADLINE,
    REPOSITORY,
    TOOLS,
    all_end,
    descendants,
    environment,
    gloveport,
    read_until,
    terminal,
)

MODES = ("legacy", "2026-07-28")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))


def folders() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("XDG_")}


@contextlib.contextmanager
def process(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command with pipes; end it with the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *args], stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**folders())) as started:
        try:
            yield started
        finally:
            started.kill()


def ask(started: subprocess.Popen[bytes], id_: int, method: str, params: object) -> None:
    assert started.stdin
    started.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n")
    started.stdin.flush()


def initialize(started: subprocess.Popen[bytes]) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    ask(started, 0, "initialize", about)
    assert started.stdin
    assert started.stdout
    assert json.loads(started.stdout.readline())["result"]["serverInfo"]["name"] == "gloveport"
    started.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    started.stdin.flush()


# `gloveport mcp`


@pytest.mark.integration
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_starts_it_and_works_with_it(mode: str) -> None:
    start = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", TOOLS, "no-such-server --stdio"], env=environment(**folders())
    )
    async with Client(start, mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(INPUT_SCHEMAS)
        assert "- some_tools (" in str(listed[0].description)
        assert "NOT connected: no_such_server" in str(listed[0].description)
        code = "await tools.some_tools.print_much(); await tools.some_tools.greet({name: 'Ada'})"
        ran = await client.call_tool("execute", {"code": code})
        assert ran.content[0].text == "hello Ada"


@pytest.mark.integration
@pytest.mark.parametrize("how", ["run --tools", "add", "mcp"])
async def test_the_demo_program_works_with_the_demo_tools_however_they_are_given(how: str, tmp_path: Path) -> None:
    tools, program = (str(REPOSITORY / "examples" / name) for name in ("demo_tools.py", "demo.ts"))
    code = await asyncio.to_thread(Path(program).read_text)
    if how == "mcp":
        async with asking("mcp", tools) as client:
            answers = [await client.call_tool("execute", {"code": text}) for text in (code, with_addresses(code))]
        totals = [answer.structured_content["value"]["total_eur"] for answer in answers]
    else:
        (tmp_path / "addressed.ts").write_text(with_addresses(code))
        given = ("--tools", tools) if how == "run --tools" else ()
        if how == "add":
            assert gloveport("add", tools, "--yes", cwd=tmp_path, **folders()).code == 0
        runs = [gloveport("run", file, *given, cwd=tmp_path, **folders()) for file in (program, "addressed.ts")]
        totals = [run.document["total_eur"] for run in runs]
    assert totals == [291.18, 291.18]


def with_addresses(code: str) -> str:
    return code.replace("tools.", "tools.demo_tools.")


@pytest.mark.integration
def test_standard_output_is_for_the_protocol_alone() -> None:
    with process("mcp", TOOLS) as started:
        initialize(started)
        ask(started, 1, "tools/call", {"name": "execute", "arguments": {"code": "await tools.some_tools.print_much()"}})
        assert started.stdout
        assert json.loads(started.stdout.readline())["result"]["structuredContent"]["value"] == 1
        out, err = started.communicate(timeout=DEADLINE)
    assert (out, started.returncode) == (b"", 0)
    for printed in (b"printed by python", b"written to descriptor 1", b"echoed by a shell"):
        assert printed in err


@pytest.mark.integration
def test_in_a_terminal_it_says_what_it_is_for() -> None:
    with terminal("mcp", **folders()) as opened:
        assert "`gloveport connect` sets one up" in opened.until("Ctrl-C ends it")
        opened.press(b"\x03")
        assert "Traceback" not in opened.rest()[1]


@pytest.mark.integration
@pytest.mark.parametrize("how", ["stdin closed", "SIGTERM", "SIGINT"])
def test_it_ends_with_its_client_and_leaves_nothing_behind(how: str) -> None:
    with process("mcp", TOOLS) as started:
        initialize(started)
        call = {
            "name": "execute",
            "arguments": {"code": "await tools.some_tools.begin(); await tools.some_tools.forever()"},
        }
        ask(started, 1, "tools/call", call)
        assert started.stderr
        assert started.stdin
        read_until(started.stderr.fileno(), "begun")
        below = descendants(started.pid)
        assert below
        if how == "stdin closed":
            started.stdin.close()
        else:
            started.send_signal(getattr(signal, how))
        assert started.wait(DEADLINE) == 0
        assert all_end(below)


# `gloveport serve`


@contextlib.asynccontextmanager
async def serving(*args: str) -> AsyncIterator[tuple[subprocess.Popen[bytes], str, httpx2.AsyncClient]]:
    """Yield the server's process, its URL, and an HTTP client with the token."""
    with process("serve", TOOLS, "--port", "0", "--json", *args) as started:
        assert started.stdout
        document = json.loads(await asyncio.to_thread(started.stdout.readline))
        headers = {"Authorization": f"Bearer {read_token(Path(document['token_file'])).reveal()}"}
        async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE, trust_env=False) as http:
            yield started, document["url"], http


def test_the_token_is_made_once_and_for_its_owner_alone() -> None:
    first = own_token().reveal()
    assert own_token().reveal() == first
    assert len(first) >= 43
    assert stat.S_IMODE(own_token_file().stat().st_mode) == 0o600
    assert repr(own_token()) == "•••(server-token)"
    own_token_file().chmod(0o640)
    with pytest.raises(OptionError, match="others can read"):
        own_token()


def test_a_token_that_is_short_or_not_there_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    with pytest.raises(OptionError, match="can't read the token"):
        read_token(file)
    for text in ("", "short", "two words " * 10, "é" * 40):
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(OptionError):
            read_token(file)
    file.write_text("x" * 32 + "\n")
    assert read_token(file).reveal() == "x" * 32


@pytest.mark.integration
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_listen_for_others_without_a_token_chosen_for_that(host: str, tmp_path: Path) -> None:
    refused = gloveport("serve", "--host", host, "--port", "0", "--json", **folders())
    assert refused.code == 2
    assert refused.document["error"]["message"] == f"{host} can be reached from other machines"
    assert "--token-file" in refused.document["error"]["hint"]
    listen(host, 0, tmp_path / "token").close()
    listen("127.0.0.1", 0, None).close()


@pytest.mark.integration
def test_a_port_that_is_taken_is_reported() -> None:
    with listen("127.0.0.1", 0, None) as taken:
        refused = gloveport("serve", "--port", str(taken.getsockname()[1]), **folders())
    assert (refused.code, "can't listen on port" in refused.err) == (2, True)


@pytest.mark.integration
def test_it_says_where_it_is_with_which_token_what_it_serves_and_how_well_it_is_sealed() -> None:
    with process("serve", TOOLS, "--port", "0") as started:
        assert started.stdout
        shown = read_until(started.stdout.fileno(), " doctor\n")
    assert "MCP      http://127.0.0.1:" in shown
    assert f"token    {own_token().reveal()}" in shown
    assert re.search(r"^sandbox  (full|kernel): ", shown, re.MULTILINE)
    assert re.search(r"^tools    \d+: some_tools.greet, ", shown, re.MULTILINE)


@pytest.mark.integration
def test_what_it_prints_to_do_next_works_as_printed_and_each_run_and_call_gets_a_line() -> None:
    with process("serve", str(REPOSITORY / "examples" / "demo_tools.py"), "--port", "0") as started:
        assert started.stdout
        assert started.stderr
        shown = read_until(started.stdout.fileno(), " doctor\n")
        execute, others = shown.partition("Next, ")[2].split("\n\n")[1:3]  # more may have come by then
        connect, doctor = others.splitlines()
        assert doctor.endswith(" doctor")
        answer = json.loads(shell(execute))
        assert answer["result"]["structuredContent"]["value"] == ["ada", "bo"]
        call, run = read_until(started.stderr.fileno(), "1 call\n").splitlines()[-2:]
        assert re.fullmatch(r"\d\d:\d\d:\d\d  curl    demo_tools.list_customers  ok  .* ms", call)
        assert re.fullmatch(r"\d\d:\d\d:\d\d  curl  execute  completed  .* m?s  1 call", run)
        assert "127.0.0.1" in shell(f"{connect} --print")


def shell(command: str) -> str:
    """Return the output of a command, as a person who pastes it gets it: without our folders on the PATH."""
    env = {**environment(**folders()), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.integration
async def test_the_lines_for_runs_and_calls_are_json_on_request() -> None:
    async with serving("--log-format", "json") as (started, url, http):
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await client.call_tool("execute", {"code": "await tools.some_tools.refuse()"})
        assert started.stderr
        call, run = map(
            json.loads, (await asyncio.to_thread(read_until, started.stderr.fileno(), "execute.*\n")).splitlines()
        )
    assert (call["kind"], call["tool"], call["status"]) == ("call", "some_tools.refuse", "failed")
    assert "out-of-stock" in call["error"]
    assert (run["kind"], run["status"], run["error"], run["calls"]) == ("run", "failed", "out-of-stock", 1)
    assert call["run"] == run["run"]
    assert {"time", "agent", "ms"} <= run.keys()


@pytest.mark.integration
async def test_runs_of_the_api_get_lines_too_and_what_a_person_could_change_is_in_the_log_alone() -> None:
    async with serving("--log-format", "json") as (started, url, http):
        assert started.stderr
        call = "await tools.some_tools.refuse()"
        ran = (await http.post(f"{url}/v1/runs", json={"code": call})).json()
        printed = await asyncio.to_thread(read_until, started.stderr.fileno(), "execute.*\n")
        first, last = map(json.loads, printed.splitlines())
        assert (first["kind"], first["tool"], first["run"]) == ("call", "some_tools.refuse", ran["run"])
        about = (last["kind"], last["run"], last["agent"], last["status"], last["error"], last["calls"])
        assert about == ("run", ran["run"], "default", "failed", "out-of-stock", 1)
        imports = {"code": "import axios from 'axios'"}

        async def over_mcp() -> str:
            async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
                return str(await client.call_tool("execute", imports))

        async def over_the_api() -> str:
            return (await http.post(f"{url}/v1/runs", json=imports)).text

        for ask in (over_mcp, over_the_api):
            assert "packages add" not in await ask()
            line = json.loads(await asyncio.to_thread(read_until, started.stderr.fileno(), "execute.*\n"))
            assert (line["error"], line["setting"]) == ("import-refused", "gloveport packages add npm:axios")


@pytest.mark.integration
async def test_quiet_prints_no_line_for_a_run_but_the_text_of_a_program_on_request() -> None:
    async with serving("--quiet") as (started, url, http):
        await http.post(f"{url}/v1/runs", json={"code": "'hidden'"})
        await http.post(f"{url}/v1/runs", json={"code": "'shown'", "logCode": True, "id": "shown"})
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await client.call_tool("execute", {"code": "await tools.some_tools.begin()"})
        started.terminate()
        assert await asyncio.to_thread(started.wait, DEADLINE) == 0
        assert started.stderr
        logged = b"""INFO gloveport.programs: run shown: typescript program "'shown'"\n"""
        assert started.stderr.read() == logged + b"begun\n"


@pytest.mark.integration
@pytest.mark.parametrize("command", ["mcp", "serve"])
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("nofile.py", "there is no file nofile.py"),
        ("nofile", "there is no file and no command nofile"),
        ("notes.json", "notes.json is neither an OpenAPI document"),
        ("htp://shop.example.org", "it does not begin with http:// or https://"),
        ("npx 'unclosed", "close the quotes"),
    ],
)
def test_text_that_can_not_be_a_source_is_refused_before_anything_is_served(
    command: str, source: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.json").write_text("{}")
    refused = gloveport(command, TOOLS, source, cwd=tmp_path, **folders())
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err


@pytest.mark.integration
@pytest.mark.parametrize("command", ["mcp", "serve"])
async def test_a_source_that_can_not_be_opened_stops_no_server(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        gone = f"http://127.0.0.1:{closed.getsockname()[1]}/openapi.json"
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    names = [gone, "no-such-server --stdio", str(tmp_path / "broken.py"), *([TOOLS] if command == "mcp" else [])]
    async with asking(command, "--private", *names) as client:
        assert str((await client.list_tools()).tools[0].description).count("NOT connected") == 3
        ran = await client.call_tool("execute", {"code": "await tools.some_tools.greet({name: 'Ada'})"})
        assert ran.content[0].text == "hello Ada"


@pytest.mark.integration
async def test_a_stop_lets_runs_finish_and_takes_no_new_ones(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    async with serving() as (started, url, http):
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="legacy") as client:
            assert started.stderr
            await client.list_tools()  # it validates results against the schemas, and can't fetch those later
            code = f"await tools.some_tools.begin(); await tools.some_tools.hold({{fifo: '{fifo}'}})"
            running = asyncio.create_task(client.call_tool("execute", {"code": code}))
            await asyncio.to_thread(read_until, started.stderr.fileno(), "begun")
            below = descendants(started.pid)
            started.terminate()
            async with asyncio.timeout(DEADLINE):
                with contextlib.suppress(httpx2.TransportError):
                    while (await http.get(f"{url}/readyz", headers={"Connection": "close"})).status_code == 200:
                        pass
            await write_when_read(fifo, "it finished", running)
            assert (await running).content[0].text == "it finished"
            assert await asyncio.to_thread(started.wait, DEADLINE) == 0
            assert all_end(below)


async def write_when_read(fifo: Path, text: str, running: asyncio.Task[Any]) -> None:
    """Write to a named pipe as soon as it has a reader, unless the run that should read it has ended."""
    async with asyncio.timeout(DEADLINE):
        while not running.done():
            try:
                descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads it yet
                await asyncio.sleep(0.01)
                continue
            os.write(descriptor, text.encode())
            os.close(descriptor)
            return


@pytest.mark.integration
async def test_a_stop_gives_up_runs_that_take_too_long_and_leaves_nothing_behind() -> None:
    async with serving("--grace", "0.2") as (started, url, http):
        with contextlib.suppress(BaseExceptionGroup, Exception):  # how the client reacts does not matter
            async with Client(streamable_http_client(f"{url}/mcp", http_client=http), mode="2026-07-28") as client:
                assert started.stderr
                code = "await tools.some_tools.begin(); await tools.some_tools.forever()"
                running = asyncio.create_task(client.call_tool("execute", {"code": code}))
                await asyncio.to_thread(read_until, started.stderr.fileno(), "begun")
                below = descendants(started.pid)
                started.terminate()
                await asyncio.wait([running])
        assert await asyncio.to_thread(started.wait, DEADLINE) == 0
        assert all_end(below)


@pytest.mark.integration
async def test_requests_for_runs_that_a_stop_ends_are_answered_and_no_traceback_is_logged() -> None:
    async with serving("--at-once", "1", "--grace", "0.2") as (started, url, http):
        assert started.stderr
        body = {"code": "await tools.some_tools.begin(); await tools.some_tools.forever()"}
        running = [asyncio.create_task(http.post(f"{url}/v1/runs", json=body)) for _ in range(5)]  # four of them wait
        await asyncio.to_thread(read_until, started.stderr.fileno(), "begun")
        started.terminate()
        replies = await asyncio.gather(*running)
        assert {(reply.status_code, reply.json()["error"]["code"]) for reply in replies} == {(503, "stopping")}
        assert await asyncio.to_thread(started.wait, DEADLINE) == 0
        assert b"Traceback" not in await asyncio.to_thread(started.stderr.read)


@pytest.mark.integration
async def test_the_server_ends_with_its_input_if_it_is_told_to() -> None:
    async with serving("--until-eof", "--grace", "0") as (started, url, http):
        assert (await http.post(f"{url}/v1/runs", json={"code": "6 * 7"})).json()["value"] == 42
        below = descendants(started.pid)
        assert started.stdin
        started.stdin.close()
        assert await asyncio.to_thread(started.wait, DEADLINE) == 0
        assert below
        assert all_end(below)


@pytest.mark.integration
async def test_a_project_is_served_with_its_sources(tmp_path: Path) -> None:
    (tmp_path / "gloveport.toml").write_text('[sources.gone]\nopenapi = "nowhere.json"\n[limits]\nmax_calls = 1\n')
    async with serving("--config", str(tmp_path / "gloveport.toml")) as (_, url, http):
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            assert "NOT connected: gone" in str((await client.list_tools()).tools[0].description)
            code = "await tools.some_tools.begin(); await tools.some_tools.begin()"
            assert "call-limit" in (await client.call_tool("execute", {"code": code})).content[0].text


@pytest.mark.integration
@pytest.mark.parametrize("mode", MODES)
async def test_a_call_into_a_source_that_is_not_open_is_answered_with_why(mode: str, tmp_path: Path) -> None:
    (tmp_path / "gloveport.toml").write_text('[sources.gone]\nopenapi = "nowhere.json"\n')
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "mcp", "--config", str(tmp_path / "gloveport.toml")],
        env=environment(**folders()),
    )  # fmt: skip
    async with Client(server, mode=mode) as client:
        answer = await client.call_tool("execute", {"code": "await tools.gone.orders.list()"})
    error = answer.structured_content["error"]
    assert answer.is_error
    assert error["code"] == "source-failed"
    assert "the source gone is not open: " in error["message"]
    assert "nowhere.json" in error["message"]
    assert error["hint"]


@pytest.mark.integration
@pytest.mark.parametrize("command", ["mcp", "serve"])
async def test_a_source_on_the_command_line_reaches_loopback_only_with_a_grant(command: str) -> None:
    async with loopback_api() as url:
        for grant, said in (([], "NOT connected"), (["--private"], "1 tool")):
            async with asking(command, url, *grant) as client:
                async with asyncio.timeout(60):
                    while "still being opened" in (text := str((await client.list_tools()).tools[0].description)):
                        pass  # the list waits for sources, at most a second
                assert said in text


@contextlib.asynccontextmanager
async def loopback_api() -> AsyncIterator[str]:
    """Yield the URL of an OpenAPI document with one operation, on loopback."""
    operation = {"operationId": "look", "responses": {"200": {"description": "Seen."}}}
    document = {"openapi": "3.1.0", "info": {"title": "Nearby", "version": "1"}, "paths": {"/look": {"get": operation}}}
    body = json.dumps(document).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/nearby.json"


@contextlib.asynccontextmanager
async def asking(command: str, *args: str) -> AsyncIterator[Client]:
    """Yield a client of the command, over its own transport."""
    if command == "mcp":
        given = [*COMMAND[1:], "mcp", *args]
        server = StdioServerParameters(command=sys.executable, args=given, env=environment(**folders()))
        async with Client(server) as client:
            yield client
        return
    async with serving(*args) as (_, url, http):
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            yield client


@pytest.mark.integration
def test_nothing_of_this_is_loaded_by_other_commands() -> None:
    heavy = ("mcp", "starlette", "uvicorn", "httpx2", "httpcore2", "websockets")
    script = f"import sys, gloveport.surfaces.cli.run.command; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert done.stdout == "[]\n"
