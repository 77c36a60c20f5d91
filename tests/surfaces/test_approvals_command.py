"""`gloveport approvals`: a person at another terminal answers the calls of a stdio server that an MCP client started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from gloveport import ApprovalRequest
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.surfaces.terminal import cells
from tests.sources.mcp.support import eventually
from tests.surfaces.agents import MODES
from tests.surfaces.command import COMMAND, environment, gloveport, terminal

pytestmark = pytest.mark.integration

TOOLS = """
from gloveport import tool

@tool(writes=True)
def pay(amount: int, to: str) -> str:
    \"\"\"Pay somebody.\"\"\"
    return f"paid {amount} to {to}"
"""
PAY = 'return await tools.bank.pay({amount: 5, to: "Bo\\u202e\\u001b[2J"})'


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Folders of a user whose tools can pay."""
    (tmp_path / "bank.py").write_text(TOOLS)
    return {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}


@contextlib.asynccontextmanager
async def client(home: dict[str, str], tmp_path: Path, mode: str = MODES[-1]) -> AsyncIterator[Client]:
    """Yield a client that has started `gloveport mcp` with the tools."""
    args = [*COMMAND[1:], "mcp", str(tmp_path / "bank.py")]
    start = StdioServerParameters(command=COMMAND[0], args=args, env=environment(**home), cwd=tmp_path)
    async with Client(start, mode=mode) as opened:
        yield opened


async def asked(home: dict[str, str], count: int = 1) -> list[dict[str, Any]]:
    """Return what `approvals list` shows, once so many calls wait."""
    shelf = ApprovalShelf(Path(home["XDG_DATA_HOME"]) / "gloveport" / "store.sqlite")
    try:
        await eventually(lambda: len(shelf.waiting()) >= count)
    finally:
        shelf.close()
    listed = await asyncio.to_thread(gloveport, "approvals", "list", "--json", **home)
    return json.loads(listed.out)["waiting"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_asks_a_person_approves_elsewhere_and_the_client_gets_the_result(
    mode: str, home: dict[str, str], tmp_path: Path
) -> None:
    async with client(home, tmp_path, mode) as opened:
        answer = await opened.call_tool("execute", {"code": PAY})
        assert not answer.is_error
        told = answer.structured_content
        assert told is not None
        assert told["status"] == "waiting"
        (request,) = await asked(home)
        assert (request["tool"], request["args"]["amount"], request["run"]) == ("bank.pay", 5, told["run"])

        def approve() -> tuple[int, str]:
            with terminal("approvals", "approve", request["id"][:8], NO_COLOR="1", **home) as screen:
                shown = screen.until(r"Approve this call\?")
                screen.press(b"y\r")
                code, rest = screen.rest()
                return code, shown + rest

        code, shown = await asyncio.to_thread(approve)
        assert code == 0, shown
        assert "tools.bank.pay" in shown
        assert "\u202e" not in shown  # hostile text is made visible
        assert "\x1b[2J" not in shown
        assert "the run goes on" in shown
        done = await opened.call_tool("resume", {"run": told["run"]})
        assert done.structured_content is not None
        assert done.structured_content["value"].startswith("paid 5 to Bo")


async def test_an_answer_needs_a_terminal_or_the_token_of_an_approver(home: dict[str, str], tmp_path: Path) -> None:
    async with client(home, tmp_path) as opened:
        told = (await opened.call_tool("execute", {"code": PAY})).structured_content
        assert told is not None
        (request,) = await asked(home)

        def answer(*args: str, **env: str) -> int:
            return gloveport("approvals", *args, request["id"], "--yes", **home, **env).code

        made = await asyncio.to_thread(gloveport, "agents", "add", "clerk", "--json", **home)
        wrong = ("gp_" + "x" * 43, made.document["token"], request["id"], request["digest"])
        for forged in ({}, *({"GLOVEPORT_APPROVER_TOKEN": token} for token in wrong)):
            assert await asyncio.to_thread(answer, "approve", **forged) == 5

        def token() -> str:
            with terminal("approvals", "add-approver", "oncall", **home) as screen:
                code, shown = screen.rest()
                assert code == 0, shown
                return shown.split()[0]

        oncall = await asyncio.to_thread(token)
        assert await asyncio.to_thread(answer, "deny", "--reason", "not today", GLOVEPORT_APPROVER_TOKEN=oncall) == 0
        done = await opened.call_tool("resume", {"run": told["run"]})
        assert done.is_error
        assert "was denied by oncall: not today" in str(done.content)
        store = Path(home["XDG_DATA_HOME"]) / "gloveport" / "store.sqlite"
        assert oncall.encode() not in await asyncio.to_thread(store.read_bytes)


async def test_a_group_of_a_run_is_approved_with_changed_arguments_refused_for_it(
    home: dict[str, str], tmp_path: Path
) -> None:
    code = "return (await Promise.all([1, 2, 3].map((n) => tools.bank.pay({amount: n, to: 'Bo'})))).length"
    async with client(home, tmp_path) as opened:
        told = (await opened.call_tool("execute", {"code": code})).structured_content
        assert told is not None
        assert told["waiting"] == 3
        await asked(home, 3)

        def approve() -> tuple[int, str]:
            with terminal("approvals", "approve", "--run", told["run"][:8], **home) as screen:
                shown = screen.until(r"Approve these 3 calls\?")
                screen.press(b"y\r")
                code, rest = screen.rest()
                return code, shown + rest

        exit_code, shown = await asyncio.to_thread(approve)
        assert exit_code == 0, shown
        assert (shown.count("bank.pay"), shown.count("asks because")) == (3, 1)
        done = await opened.call_tool("resume", {"run": told["run"]})
        assert done.structured_content is not None
        assert done.structured_content["value"] == 3


async def test_changed_arguments_are_shown_before_they_are_approved_and_an_id_may_be_short(
    home: dict[str, str], tmp_path: Path
) -> None:
    def answer(*options: str) -> str:
        with terminal("approvals", *options, **home) as screen:
            shown = screen.until(r"Approve this call\?")
            screen.press(b"y\r")
            code, rest = screen.rest()
        assert code == 0, rest
        return shown

    def revoke(id: str) -> tuple[int, str]:
        with terminal("approvals", "revoke", id, **home) as screen:
            return screen.rest()

    async with client(home, tmp_path) as opened:
        told = (await opened.call_tool("execute", {"code": PAY})).structured_content
        (request,) = await asked(home)
        changed = '{"amount": 4, "to": "Cy\\u202e"}'
        shown = await asyncio.to_thread(answer, "approve", request["id"][:6], "--args", changed)
        assert '"amount": 5' in shown
        assert shown.index('"amount": 5') < shown.index("instead:") < shown.index('{ "amount": 4, "to": "Cy\\u202e" }')
        assert told is not None
        done = await opened.call_tool("resume", {"run": told["run"]})
        assert "paid 4 to Cy" in str(done.content)
        await opened.call_tool("execute", {"code": PAY})
        (request,) = await asked(home)
        await asyncio.to_thread(answer, "approve", request["id"], "--always")
    (standing,) = json.loads((await asyncio.to_thread(gloveport, "approvals", "standing", "--json", **home)).out)[
        "standing"
    ]
    assert (await asyncio.to_thread(revoke, "x"))[0] == 5
    code, shown = await asyncio.to_thread(revoke, standing["id"][:5])
    assert (code, f"{standing['id']} is revoked" in shown) == (0, True)


@pytest.mark.parametrize("columns", [40, 80])
def test_no_argument_passes_for_a_line_of_ours(home: dict[str, str], columns: int) -> None:
    """A text that is padded to the edge of the terminal would begin a line of its own."""
    fake = "feedface  tools.bank.look"
    hostile = {"to": "\x1b[2J\u202e\n" + (" " * columns + fake) * 3, "日" * columns: "\u2028\x85" + fake}
    now = time.time()
    shelf = ApprovalShelf(Path(home["XDG_DATA_HOME"]) / "gloveport" / "store.sqlite")
    asked = ApprovalRequest(
        "a" * 32, 1, "bank.pay", hostile, "default", now, now + 60, reason=fake * 3, advice=("look at line 7",)
    )
    shelf.put(asked, "host")
    shelf.close()
    for command in (["list"], ["show", asked.id], ["approve", asked.id], ["watch"]):
        with terminal("approvals", *command, columns=columns, NO_COLOR="1", **home) as screen:
            shown = screen.until(r"expires in .*\n")
        rows = shown.replace("\r\n", "\n").split("\n")
        assert "    advice: look at line 7" in rows
        assert [row for row in rows if cells(row) > columns] == []
        assert all(row.startswith("    ") for row in rows if fake[:8] in row)
        assert all(row.startswith(("    │ ", "      ", "    asks")) for row in rows if "face" in row)
        assert not {"\x1b", "\u202e", "\u2028", "\x85"} & set(shown)
        assert "".join(row[6:] for row in rows if row.startswith("    │ ")).replace(" ", "").count("tools.bank.look") == 4


async def test_a_request_outlives_a_host_that_was_killed_and_the_run_goes_on_in_the_next(
    home: dict[str, str], tmp_path: Path
) -> None:
    with contextlib.suppress(Exception):  # the client notices that its server is gone
        async with client(home, tmp_path) as opened:
            await opened.call_tool("execute", {"code": PAY})
            (request,) = await asked(home)
            shelf = Path(home["XDG_DATA_HOME"]) / "gloveport" / "store.sqlite"
            with contextlib.closing(sqlite3.connect(shelf)) as connection:
                (mark,) = connection.execute("SELECT process FROM approvals").fetchone()
            os.kill(int(mark.split()[1]), signal.SIGKILL)
    (left,) = await asked(home)
    assert left["id"] == request["id"]

    def approve() -> tuple[int, str]:
        with terminal("approvals", "approve", request["id"], "--yes", **home) as screen:
            return screen.rest()

    code, shown = await asyncio.to_thread(approve)
    assert (code, f"gloveport runs resume {request['run'][:8]}" in shown) == (0, True)
    async with client(home, tmp_path) as opened:
        done = (await opened.call_tool("resume", {"run": request["run"]})).structured_content
    assert done is not None
    assert "paid 5" in str(done["value"])


def test_mistakes_are_told(home: dict[str, str]) -> None:
    assert "no call waits" in gloveport("approvals", "list", **home).err
    assert gloveport("approvals", "show", "abc", **home).code == 5
    refused = gloveport("approvals", "approve", "abc", "--args", "{}", "--always", **home)
    assert refused.code == 2
    assert "--args changes the arguments of one call" in refused.err
