"""A definition that changes, as its owner meets it on the command line; and a question that Ctrl-C ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.command import gloveport, terminal
from tests.test_sources import ORDERS, Orders


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


async def command(*args: str) -> Any:
    return await asyncio.to_thread(gloveport, *args)


async def test_a_change_is_shown_and_accepted() -> None:
    orders = Orders()
    async with await asyncio.start_server(orders.answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        added = await command("add", f"{url}/openapi.json", "--base-url", url, "--private", "--yes")
        assert added.code == 0, added.err
        assert "orders" in added.err + added.out  # named by its title
        orders.document = json.loads(json.dumps(ORDERS).replace("Get an order", "Get an order, and more"))
        refused = await command("tools", "call", "orders.orders.get", '{"id": 1}')
        assert (refused.code, "tools changes orders" in refused.err) == (3, True)
        shown = await command("tools", "changes")
        assert "-      /** Get an order */" in shown.out
        assert "+      /** Get an order, and more */" in shown.out
        assert "gloveport tools accept orders" in shown.err
        assert (await command("tools", "accept", "orders")).code == 0
        assert "nothing has changed" in (await command("tools", "changes")).err
        described = (await command("tools", "describe", "orders.orders.get", "--json")).document["tool"]
        assert "Get an order, and more" in described["python"]
        assert not described["suspended"]


async def test_a_change_that_no_declaration_shows_is_told_in_words() -> None:
    orders = Orders()
    async with await asyncio.start_server(orders.answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        orders.document = {**ORDERS, "servers": [{"url": url}]}
        assert (await command("add", f"{url}/openapi.json", "--private", "--yes")).code == 0
        orders.document = {**ORDERS, "servers": [{"url": "http://127.0.0.1:9"}]}
        assert "where its requests go" in (await command("tools", "changes")).out


def test_ctrl_c_at_a_question_ends_the_command_and_changes_nothing(tmp_path: Path) -> None:
    Path("people.py").write_text("def greet() -> str:\n    return 'hi'\n")
    with terminal("add", "people.py") as screen:
        screen.until(r"\[y/N\]")
        screen.press(b"\x03")
        assert screen.rest()[0] == 130
    assert not Path("gloveport.toml").exists()
