"""Sandboxes of another Gloveport: what happens when it refuses, lies, falls silent or dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.server import ServerConnection

from gloveport import Gloveport, tool
from gloveport.errors import OptionError
from gloveport.store.tokens import Role
from gloveport.types import Language
from tests.conftest import children_of
from tests.durable.test_resume import answer, is_released, only_run
from tests.sandbox_hosts import SandboxHostProcess, caller_settings, cuttable, hostile_host, sandbox_host, until
from tests.sources.mcp.support import eventually
from tests.surfaces.agents import AUTHORIZATION, TOKEN, http_server
from tests.surfaces.command import gloveport

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

LIMITS = {"wall_seconds": 20, "cpu_seconds": 1, "memory_mb": 128}


@pytest.fixture(scope="module")
def host() -> Iterator[SandboxHostProcess]:
    with sandbox_host(limits=LIMITS, spare=0) as found:  # each sandbox belongs to a run
        yield found


class Once:
    """A tool that hangs until its run ends, and counts its calls."""

    def __init__(self) -> None:
        self.calls, self.started = 0, asyncio.Event()

    async def once(self) -> None:
        """Hang."""
        self.calls += 1
        self.started.set()
        await asyncio.Event().wait()


def deno_sandboxes(host: SandboxHostProcess) -> int:
    """Count the Deno processes of a host. It also has fork servers, and processes that read programs: they come and go."""
    count = 0
    for pid in children_of(host.process.pid):
        with contextlib.suppress(OSError):  # it has ended since
            count += Path(f"/proc/{pid}/comm").read_text().strip() == "deno"
    return count


async def lost_run(port: Gloveport, tool: Once, lose: Callable[[], None]) -> None:
    """Start a run, lose its sandbox in the middle of a call, and check how the run ends."""
    run = asyncio.create_task(port.run("console.log('before'); await tools.once(); 'after'"))
    await tool.started.wait()
    lose()
    outcome = await asyncio.wait_for(run, 10)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.code == "sandbox-lost"
    assert "not started again" in outcome.error.message
    assert [line.text for line in outcome.logs] == ["before"]
    assert [call.tool for call in outcome.calls] == ["once"]
    await asyncio.sleep(0)
    assert tool.calls == 1


async def test_a_host_that_is_killed_ends_the_run_and_nothing_is_started_again() -> None:
    tool = Once()
    with sandbox_host(spare=1) as own:
        async with Gloveport(tools=[tool.once], config=caller_settings(own.url)) as port:
            await lost_run(port, tool, own.kill)
            later = await port.run("1")
            assert later.error is not None
            assert later.error.code == "sandbox-unreachable"


async def test_a_connection_that_is_cut_ends_the_run_here_and_the_sandbox_there(host: SandboxHostProcess) -> None:
    tool = Once()
    async with cuttable(host.url) as (url, cut), Gloveport(tools=[tool.once], config=caller_settings(url)) as port:
        assert (await port.run("1 + 1")).value == 2
        await until(lambda: deno_sandboxes(host) == 0)
        lent: list[int] = []

        def lose() -> None:
            lent.append(deno_sandboxes(host))
            cut()

        await lost_run(port, tool, lose)
        await until(lambda: deno_sandboxes(host) == 0)
        assert lent[0] >= 1  # the host may still be at its warm-up run, which ends by itself
        assert (await port.run("1 + 2")).value == 3


async def test_the_limits_of_the_host_hold_where_they_are_lower(host: SandboxHostProcess) -> None:
    async with Gloveport(config=caller_settings(host.url)) as port:
        burnt = await port.run("while True: pass", language="python", limits={"cpu_seconds": 30})
        assert burnt.error is not None
        assert (burnt.error.code, burnt.error.message) == ("cpu-limit", "the program used more than 1 s of CPU time")
        assert 0.9 < burnt.usage.cpu_seconds <= 3
        own = await port.run("await new Promise((done) => setTimeout(done, 9000))", limits={"wall_seconds": 0.5})
        assert own.error is not None
        assert (own.error.code, own.error.message) == (
            "time-limit",
            "the run took longer than 0.5 s; it was waiting for a timer",
        )
        large = await port.run("'x' * 200_000_000", language="python", limits={"memory_mb": 256})
        assert large.error is not None
        assert large.error.code == "memory-limit"


async def test_a_host_grants_eval_only_if_it_allows_its_own_programs_eval(host: SandboxHostProcess) -> None:
    port = Gloveport(allow_eval=True, config=caller_settings(host.url))
    outcome = await port.run("eval('1 + 1')")
    await port.close()
    assert outcome.error is not None
    assert "does not grant allow_eval" in outcome.error.message


@pytest.mark.parametrize("token", ["w" * 40, ""])
async def test_a_wrong_token_or_none_gets_no_sandbox(host: SandboxHostProcess, token: str) -> None:
    port = Gloveport(config=caller_settings(host.url, token=token))
    outcome = await port.run("1")
    await port.close()
    assert outcome.error is not None
    assert outcome.error.code == ("sandbox-unreachable" if token else "auth-required")
    assert "token" in outcome.error.message


async def test_an_agent_gets_no_sandbox_of_its_own() -> None:
    with sandbox_host("agent", spare=0) as own:
        port = Gloveport(config=caller_settings(own.url))
        outcome = await port.run("1")
        await port.close()
    assert outcome.error is not None
    assert outcome.error.message == "the sandbox host gave no sandbox: the role of the token may not use sandboxes"


async def test_a_private_address_needs_a_grant() -> None:
    port = Gloveport(config=caller_settings("https://127.0.0.1:1", allow_private=False))
    outcome = await port.run("1")
    await port.close()
    assert outcome.error is not None
    assert outcome.error.code == "egress-denied"


@pytest.mark.parametrize(
    "remote",
    [
        {"url": "http://sandboxes.example", "token": "env:T"},
        {"url": "https://sandboxes.example/path", "token": "env:T"},
        {"url": "https://sandboxes.example", "token": "the-secret-itself"},
        {"url": "https://sandboxes.example"},
        {"url": "https://u:p@sandboxes.example", "token": "env:T"},
        {"url": "https://sandboxes.example", "token": "env:T", "verify": False},
    ],
)
def test_settings_of_a_sandbox_host_are_checked_before_anything_starts(tmp_path: Path, remote: dict[str, Any]) -> None:
    file = tmp_path / "gloveport.toml"
    file.write_text("[sandbox.remote]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in remote.items()))
    with pytest.raises(OptionError) as caught:
        Gloveport(config=file)
    assert "the-secret-itself" not in str(caught.value)


# Hosts that do not keep to the protocol. A worker is ready in each; what follows is hostile.

REPORT = json.dumps(["report", "full", []])
READY = json.dumps(["ready", "deno 2.9.1", 30, 60, 30, 256])
HUGE_USAGE = struct.pack(">QI", 2**64 - 1, 2**32 - 1)
USAGE = struct.pack(">QI", 1000, 1000)


def framed(*messages: Any) -> bytes:
    packed = [json.dumps(message).encode() for message in messages]
    return b"".join(len(each).to_bytes(4) + each for each in packed)


async def hostile_run(after: Callable[[ServerConnection], Awaitable[None]], **options: Any) -> Any:
    async def answer(connection: ServerConnection) -> None:
        asked = json.loads(await connection.recv())
        if asked[0] == "probe":
            await connection.send(REPORT)
        else:
            await connection.send(READY)
            await connection.recv()  # the limits
            await connection.recv()  # the program
            await after(connection)
        await connection.wait_closed()

    async with hostile_host(answer) as url:
        port = Gloveport(config=caller_settings(url))
        try:
            return await asyncio.wait_for(port.run("1", **options), 20)
        finally:
            await port.close()


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        pytest.param([b""], "sandbox-lost", id="an empty message"),
        pytest.param([b"short"], "sandbox-lost", id="less than the usage"),
        pytest.param(["no JSON"], "sandbox-lost", id="no JSON"),
        pytest.param(["[" * 100_000], "sandbox-lost", id="depth"),
        pytest.param(["x" * 300_000], "sandbox-lost", id="a text that is too large"),
        pytest.param([b"x" * 300_000], "sandbox-lost", id="bytes that are too large"),
        pytest.param(['["exit",null,9,1e99,5,null,""]'], "sandbox-lost", id="an impossible exit"),
        pytest.param(['["exit",null,9,0.1,5,"because",""]'], "sandbox-lost", id="an unknown limit"),
        pytest.param(['["ready","deno",1,1,1,64]'], "sandbox-lost", id="ready again"),
        pytest.param([USAGE + b"\xff" * 64], "frame-too-large", id="a huge frame"),
        pytest.param([USAGE + framed(["call", 1])], "wire-violation", id="a malformed call"),
        pytest.param([USAGE + framed(["nonsense"])], "wire-violation", id="an unknown frame"),
        pytest.param([USAGE + framed(["call", 1, "add", []], ["call", 1, "add", []])], "wire-violation", id="an id twice"),
        pytest.param(['["exit",1,null,0.5,9,null,""]'], "sandbox-crashed", id="a crash"),
    ],
)
async def test_garbage_of_a_host_ends_the_run_like_garbage_of_a_guest(messages: list[bytes | str], code: str) -> None:
    async def send(connection: ServerConnection) -> None:
        for message in messages:
            await connection.send(message)

    outcome = await hostile_run(send)
    assert outcome.error.code == code, outcome.error


async def test_claims_about_usage_are_cut_to_the_limits() -> None:
    async def boast(connection: ServerConnection) -> None:
        await connection.send(HUGE_USAGE + framed(["done", "value", 5, {}]))

    outcome = await hostile_run(boast)
    assert outcome.value == 5
    assert outcome.usage.cpu_seconds <= 32
    assert outcome.usage.memory_peak_mb <= 30 + 256 * 1.1


async def test_a_host_that_falls_silent_ends_the_run_at_its_time_limit() -> None:
    async def nothing(connection: ServerConnection) -> None:
        await connection.wait_closed()

    outcome = await hostile_run(nothing, limits={"wall_seconds": 0.2})
    assert outcome.error.code == "time-limit"
    assert outcome.usage.wall_seconds < 10


# What is listed.


def listed_engines(folder: Path, url: str) -> tuple[Any, str]:
    """Return the engines by name as `gloveport engines` lists them with this sandbox host, and as text."""
    file = folder / "gloveport" / "gloveport.toml"
    file.parent.mkdir(exist_ok=True)
    remote = f'url = "{url}"\ntoken = "env:HOST_TOKEN"\nallow_private = true\n'
    file.write_text(f'[sandbox]\nengines = ["remote"]\n[sandbox.remote]\n{remote}')
    env = {"XDG_CONFIG_HOME": str(folder), "HOST_TOKEN": TOKEN}
    document = gloveport("engines", "--json", cwd=folder, **env).document
    return {row["name"]: row for row in document["engines"]}, gloveport("engines", cwd=folder, **env).out


async def test_the_engines_of_the_sandbox_host_are_listed_with_their_state(
    host: SandboxHostProcess, tmp_path: Path
) -> None:
    rows, text = await asyncio.to_thread(listed_engines, tmp_path, host.url)
    remote = rows["remote-deno"]
    assert (remote["available"], remote["problem"], remote["chosen"]) == (True, None, ["typescript", "javascript"])
    assert remote["strength"] == rows["deno"]["strength"]
    assert rows["deno"]["chosen"] == []
    assert "✓ remote-cpython" in text
    rows, text = await asyncio.to_thread(listed_engines, tmp_path, "http://127.0.0.1:9")
    assert (rows["remote-deno"]["available"], rows["deno"]["available"]) == (False, True)
    assert "the sandbox host gave no sandbox" in rows["remote-deno"]["problem"]
    assert "✗ remote-quickjs" in text


@pytest.mark.parametrize("role", ["agent", "admin"])
async def test_the_api_lists_them_too_and_tells_people_alone_what_is_wrong(role: Role) -> None:
    port = Gloveport(config=caller_settings("http://127.0.0.1:9"), spare=0)
    async with http_server(port, role=role) as url, httpx2.AsyncClient(headers=AUTHORIZATION, trust_env=False) as client:
        found = (await client.get(f"{url}/v1/engines", timeout=60)).json()["engines"]
    problems = {row["name"]: row["problem"] for row in found}
    assert problems["deno"] is None
    assert ("127.0.0.1" in problems["remote-deno"]) is (role == "admin")


# What is recorded.


async def test_a_run_is_recorded_with_its_engine_and_replays_there(host: SandboxHostProcess, tmp_path: Path) -> None:
    calls: list[int] = []

    def note(n: int) -> int:
        """Note a number."""
        calls.append(n)
        return n * 2

    options: dict[str, Any] = {"tools": [note], "store": tmp_path / "store.db", "config": caller_settings(host.url)}
    async with Gloveport(**options) as port:
        outcome = await port.run("const a = await tools.note(1); const b = await tools.note(a); [a, b, Math.random() > 2]")
        assert outcome.value == [2, 4, False]
        assert (await port.recording(outcome.run)).engine == "remote-deno"
        assert await port.replay(outcome.run) is None
        python = await port.run("await tools.note(n=7)", language="python")
        assert (await port.recording(python.run)).engine == "remote-cpython"
        assert await port.replay(python.run) is None
    assert calls == [1, 2, 7]


@pytest.mark.parametrize("language", ["typescript", "python"])
async def test_a_run_that_waits_is_released_and_goes_on_there(
    host: SandboxHostProcess, tmp_path: Path, language: Language
) -> None:
    made: list[int] = []

    @tool(writes=True)
    def pay(n: int) -> int:
        """Pay."""
        made.append(n)
        return n

    store = tmp_path / "store.db"
    programs = {"typescript": "return [await tools.pay({n: 1}), await tools.pay({n: 2})]"}
    code = programs.get(language, "[await tools.pay(n=1), await tools.pay(n=2)]")
    async with Gloveport(tools=[pay], store=store, config=caller_settings(host.url)) as port:
        assert port._held is not None
        port._held._hold_seconds = 0.01
        outcome = await port.run(code, language=language)
        for count in (1, 2):
            await eventually(lambda: is_released(store))
            answer(store)
            await eventually(lambda count=count: len(made) == count)
        await eventually(lambda: only_run(store).status == "completed")
        assert (await port.resume(outcome.run)).value == [1, 2]
    assert made == [1, 2]
    assert only_run(store).engine == ("remote-deno" if language == "typescript" else "remote-cpython")
