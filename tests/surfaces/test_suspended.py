"""Changed definitions on the command line: shown, accepted or suspended; and Ctrl-C at a question."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.surfaces.command import Finished, gloveport, terminal
from tests.test_sources import ORDERS, Orders

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def own(*args: str) -> Finished:
    """Run the command with its own folders for settings, data and caches."""
    return gloveport(*args, **{name: value for name, value in os.environ.items() if name.startswith("XDG_")})


async def command(*args: str) -> Finished:
    return await asyncio.to_thread(own, *args)


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
        unasked = await command("tools", "accept", "orders")
        assert (unasked.code, "nobody can answer" in unasked.err) == (2, True)
        assert "+      /** Get an order, and more */" in unasked.err
        assert (await command("tools", "call", "orders.orders.get", '{"id": 1}')).code == 3
        accepted = await command("tools", "accept", "orders", "--yes", "--json")
        assert [row["tool"] for row in accepted.document["accepted"]] == ["orders.orders.get"]
        assert "+      /** Get an order, and more */" in accepted.document["accepted"][0]["diff"]
        again = await command("tools", "accept", "orders")
        assert (again.code, "nothing has changed in orders" in again.err) == (0, True)
        assert "nothing has changed" in (await command("tools", "changes")).err
        described = (await command("tools", "describe", "orders.orders.get", "--json")).document["tool"]
        assert "Get an order, and more" in described["python"]
        assert not described["suspended"]


async def test_a_change_that_no_declaration_shows_is_explained_in_words() -> None:
    orders = Orders()
    async with await asyncio.start_server(orders.answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        orders.document = {**ORDERS, "servers": [{"url": url}]}
        assert (await command("add", f"{url}/openapi.json", "--private", "--yes")).code == 0
        orders.document = {**ORDERS, "servers": [{"url": "http://127.0.0.1:9"}]}
        assert "the address of its requests" in (await command("tools", "changes")).out


@pytest.mark.parametrize("kind", ["openapi", "graphql"])
def test_a_projects_own_definition_that_changes_is_suspended_like_a_remote_one(kind: str) -> None:
    before, after = {
        "openapi": (json.dumps(ORDERS), json.dumps(ORDERS).replace("Get an order", "Get an order, and more")),
        "graphql": ('type Query { "One" get: Int other: Int }', 'type Query { "One, and more" get: Int other: Int }'),
    }[kind]
    file = Path("definition.json" if kind == "openapi" else "definition.graphql")
    file.write_text(before)
    added = own("add", str(file), "--name", "mine", "--base-url", "https://orders.example.org/graphql", "--yes")
    assert added.code == 0, added.err
    assert "nothing has changed" in own("tools", "changes").err
    file.write_text(after)
    changed = [row["tool"] for row in own("tools", "changes", "--json").document["changed"]]
    assert changed == ["mine.orders.get" if kind == "openapi" else "mine.get"]
    refused = own("run", "-e", f"await tools.{changed[0]}({{id: 1}})" if kind == "openapi" else "await tools.mine.get()")
    assert (refused.code, "tools changes mine" in refused.err) == (3, True)
    assert own("tools", "accept", "mine", "--yes").code == 0
    assert "nothing has changed" in own("tools", "changes").err


def test_a_definition_in_a_file_of_ones_own_settings_is_ones_own_to_change(tmp_path: Path) -> None:
    Path("definition.json").write_text(json.dumps(ORDERS))
    assert own("add", "definition.json", "--name", "mine", "--scope", "user", "--yes").code == 0
    Path("definition.json").write_text(json.dumps(ORDERS).replace("Get an order", "Get an order, and more"))
    assert "nothing has changed" in own("tools", "changes").err
    assert "and more" in own("tools", "describe", "mine.orders.get").out


def test_ctrl_c_at_a_question_ends_the_command_and_changes_nothing(tmp_path: Path) -> None:
    Path("people.py").write_text("def greet() -> str:\n    return 'hi'\n")
    with terminal("add", "people.py") as screen:
        screen.until(r"\[y/N\]")
        screen.press(b"\x03")
        assert screen.rest()[0] == 130
    assert not Path("gloveport.toml").exists()
