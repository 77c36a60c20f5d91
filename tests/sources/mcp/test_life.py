"""A session is reused, watched, ended and begun again; whatever a server does, the host lives and knows why."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gloveport.errors import SourceError, ToolError
from gloveport.sources.mcp import stdio
from gloveport.sources.mcp.restart_backoff import RestartBackoff
from tests.conftest import children_of, open_files
from tests.sources.mcp.support import LIBRARY, WAYS, call, eventually, library, lives, on_stdio, opened, raw, tool


@pytest.mark.integration
async def test_a_server_that_dies_in_a_call_fails_that_call_and_is_started_for_the_next() -> None:
    async with opened(on_stdio(*LIBRARY)) as source:
        await call(source, "note", text="lost with the process")
        with pytest.raises(ToolError) as caught:
            await call(source, "die", after="all")
        assert caught.value.code == "source-unreachable"
        assert not caught.value.retryable  # nobody knows what it had done
        assert "dying all" in caught.value.message and "status 3" in caught.value.message
        assert source.state == "starts with the next call"
        assert (await call(source, "peek"))["result"] == []
        assert source.state == "live"


@pytest.mark.integration
async def test_every_call_under_way_fails_when_the_server_dies_and_none_is_made_again(tmp_path: Path) -> None:
    async with opened(on_stdio(*LIBRARY, env={"STATE": str(tmp_path)})) as source:
        waiting = [asyncio.create_task(call(source, "wait")) for _ in range(5)]
        await eventually((tmp_path / "waiting").exists)
        with pytest.raises(ToolError):
            await call(source, "die")
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {getattr(result, "code", None) for result in results} == {"source-unreachable"}
        (tmp_path / "waiting").unlink()
        assert await call(source, "add", a=1, b=1) == {"result": 2}
        assert not (tmp_path / "waiting").exists()


@pytest.mark.integration
async def test_a_server_that_dies_again_and_again_is_given_rest() -> None:
    async with opened(raw("flap")) as source:
        messages = []
        for _ in range(4):
            with pytest.raises(ToolError) as caught:
                await call(source, "echo")
            assert caught.value.code == "source-unreachable"
            messages.append(caught.value.message)
        assert "ended during the call" in messages[0] and "ended during the call" in messages[1]
        assert "rests for" in messages[2] and "rests for" in messages[3]
        assert source.state.startswith("rests for")


def test_rest_grows_up_to_a_minute_and_a_long_life_ends_it() -> None:
    now = 0.0
    backoff = RestartBackoff(lambda: now)
    waits = []
    for _ in range(10):
        backoff.started()
        backoff.died()
        waits.append(backoff.wait)
        now += backoff.wait
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    backoff.started()
    now += 31
    backoff.died()
    assert backoff.wait == 0


@pytest.mark.integration
async def test_a_server_that_can_not_be_started_says_why() -> None:
    with pytest.raises(SourceError, match="No such file") as caught:
        async with opened(on_stdio("no-such-command-anywhere")):
            pass
    assert caught.value.hint and "PATH" in caught.value.hint
    with pytest.raises(SourceError, match=r"status 2(.|\n)*no such database"):
        async with opened(raw("dies at once")):
            pass


@pytest.mark.integration
async def test_a_server_that_never_answers_is_given_up_and_leaves_nothing() -> None:
    before = children_of(os.getpid())
    with pytest.raises(SourceError, match="did not answer within"):
        async with opened(raw("mute", timeout_seconds=0.5)):
            pass
    assert children_of(os.getpid()) <= before


@pytest.mark.integration
async def test_a_server_that_ends_when_asked_for_the_newest_protocol_is_asked_for_the_older_one() -> None:
    async with opened(raw("shy")) as source:
        assert await call(source, "echo") == "echo"


@pytest.mark.integration
@pytest.mark.parametrize(("way", "version"), [("stdio", "2026-07-28"), ("stdio", "2025-11-25")])
async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(way: str, version: str, tmp_path: Path) -> None:
    async with library(way, version, {"STATE": str(tmp_path)}) as source:
        assert source._session
        source._session._timeout = 0.5
        with pytest.raises(ToolError, match=r"within 0\.5 s") as caught:
            await call(source, "wait")
        assert caught.value.code == "source-timeout"
        await eventually((tmp_path / "cancelled").exists)
        assert await call(source, "add", a=1, b=2) == {"result": 3}


@pytest.mark.integration
@pytest.mark.parametrize(("way", "version"), WAYS)
async def test_a_cancelled_call_is_cancelled_at_the_server(
    way: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE", str(tmp_path))  # the HTTP server runs in this process
    async with library(way, version, {"STATE": str(tmp_path)}) as source:
        task = asyncio.create_task(call(source, "wait"))
        await eventually((tmp_path / "waiting").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually((tmp_path / "cancelled").exists)
        assert await call(source, "add", a=1, b=2) == {"result": 3}


@pytest.mark.integration
async def test_closing_ends_the_process_and_its_children() -> None:
    before = children_of(os.getpid())
    async with opened(on_stdio(*LIBRARY)) as source:
        found = await call(source, "process")
        assert lives(found["pid"]) and lives(found["child"])
    assert not lives(found["pid"])
    assert not lives(found["child"])
    assert children_of(os.getpid()) <= before
    with pytest.raises(ToolError, match="closed"):
        await source.call(tool(source, "add"), {"a": 1, "b": 1})
    await source.close()


@pytest.mark.integration
async def test_a_dead_servers_children_are_ended_too() -> None:
    async with opened(on_stdio(*LIBRARY)) as source:
        found = await call(source, "process")
        os.kill(found["pid"], signal.SIGKILL)
        await eventually(lambda: source.state != "live")
        assert await call(source, "add", a=1, b=2) == {"result": 3}
        assert not lives(found["child"])


@pytest.mark.integration
async def test_a_server_is_dead_when_its_process_is_whoever_holds_its_pipes() -> None:
    async with opened(raw("heir")) as source:
        child = (await call(source, "echo"))["child"]
        await eventually(lambda: source.state != "live")
        await eventually(lambda: not lives(child))


@pytest.mark.integration
async def test_a_server_that_ignores_everything_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "GRACE_SECONDS", 0.2)
    before = children_of(os.getpid())
    async with opened(raw("stubborn")) as source:
        assert await call(source, "echo") == "echo"
    assert children_of(os.getpid()) <= before


@pytest.mark.integration
async def test_opening_that_is_cancelled_leaves_no_process() -> None:
    before = children_of(os.getpid())

    async def open_it() -> None:
        async with opened(raw("mute")):
            pass

    task = asyncio.create_task(open_it())
    await eventually(lambda: bool(children_of(os.getpid()) - before))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children_of(os.getpid()) <= before


@pytest.mark.integration
async def test_sessions_leave_no_descriptors_and_no_tasks() -> None:
    async with opened(raw("plain")) as source:
        await call(source, "echo")
    files, tasks = open_files(), len(asyncio.all_tasks())
    for _ in range(10):
        async with opened(raw("plain")) as source:
            await call(source, "echo")
    assert len(asyncio.all_tasks()) <= tasks
    assert len(open_files()) <= len(files)


# What a server writes.


@pytest.mark.integration
async def test_garbage_on_stdout_is_passed_over() -> None:
    async with opened(raw("garbage")) as source:
        assert await call(source, "echo") == "echo"
        assert await call(source, "echo") == "echo"


@pytest.mark.integration
async def test_a_server_that_writes_only_garbage_is_ended() -> None:
    async with opened(raw("only garbage")) as source:
        with pytest.raises(ToolError, match="not MCP on stdout") as caught:
            await call(source, "echo")
        assert caught.value.code == "source-unreachable"


@pytest.mark.integration
async def test_a_flood_on_stderr_is_kept_to_its_last_lines() -> None:
    async with opened(raw("noise")) as source:
        with pytest.raises(ToolError, match="the end of the noise") as caught:
            await call(source, "echo")
        assert len(caught.value.message) < 5000


@pytest.mark.integration
@pytest.mark.parametrize("behaviour", ["large", "large, id last"])
async def test_a_reply_that_is_too_large_fails_its_call_and_the_session_lives(behaviour: str) -> None:
    async with opened(raw(behaviour, max_response_bytes=1_000_000)) as source:
        session = source._session
        for _ in range(2):
            with pytest.raises(ToolError, match="larger than 1,000,000 bytes") as caught:
                await call(source, "echo")
            assert caught.value.code == "reply-too-large"
        assert source._session is session


@pytest.mark.integration
async def test_a_reply_that_is_too_large_and_nobodys_ends_the_session() -> None:
    async with opened(raw("large, no id", max_response_bytes=1_000_000)) as source:
        with pytest.raises(ToolError, match="a message that is larger than 1,000,000 bytes"):
            await call(source, "echo")


@pytest.mark.integration
async def test_a_reply_of_more_lists_than_anyone_means_is_not_built() -> None:
    async with opened(raw("much JSON")) as source:
        session = source._session
        with pytest.raises(ToolError, match="the reply is too much JSON: it holds more than 100,000 lists") as caught:
            await call(source, "echo", where="structured")
        assert caught.value.code == "reply-too-large"
        assert await call(source, "echo", where="text") == "[" + "[]," * 600_000 + "[]]"
        assert source._session is session


@pytest.mark.integration
async def test_a_reply_within_the_bound_arrives_whole() -> None:
    async with opened(raw("large", max_response_bytes=3_000_000)) as source:
        assert len(await call(source, "echo")) == 2_000_000
