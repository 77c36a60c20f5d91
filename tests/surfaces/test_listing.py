"""`gloveport tools list` and `search` answer from lists on disk, and open only what they have to."""

from __future__ import annotations

import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.config import load_config
from gloveport.folders import cache_folder
from gloveport.host import source_opener
from gloveport.sources.pins import PinnedDefinition, Pins
from gloveport.surfaces.cli.tools.listing import list_command
from gloveport.surfaces.cli.tools.tool_lists import cached_lists
from gloveport.surfaces.cli.view import ViewOptions
from tests.surfaces.command import COMMAND, REPOSITORY, environment, gloveport, terminal

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer

with open("starts.log", "a") as log:
    log.write(sys.argv[1] + "\\n")
server = MCPServer(sys.argv[1])

@server.tool()
def look_up(word: str) -> str:
    "Look a word up in the dictionary."
    return word

server.run()
"""
MAX_CPU_SECONDS = 0.3  # the bar is 0.1 s (see benchmarks); reading all definitions took 1.1 s


@pytest.fixture
def servers(folder: Path) -> Path:
    (folder / "server.py").write_text(SERVER)
    commands = "".join(
        f"[sources.{name}]\nmcp = {json.dumps([sys.executable, 'server.py', name])}\nenv = {{ PYTHONPATH = '{REPOSITORY}/src' }}\n"
        for name in ("one", "two")
    )
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "gloveport" / "gloveport.toml"
    config.parent.mkdir(parents=True)
    config.write_text(commands)
    return folder


def started(folder: Path) -> list[str]:
    log = folder / "starts.log"
    found = sorted(log.read_text().split()) if log.exists() else []
    log.unlink(missing_ok=True)
    return found


@pytest.mark.integration
def test_servers_are_started_once_and_then_only_when_they_are_named(servers: Path) -> None:
    for name in ("one", "two"):  # a source that is named is waited for
        first = gloveport("tools", "list", name)
        assert (first.code, first.out.count("look_up"), started(servers)) == (0, 1, [name]), first.err
    listed, found = gloveport("tools", "list"), gloveport("tools", "search", "dictionary")
    assert (listed.out.count("look_up"), found.out.count("look_up"), started(servers)) == (2, 2, [])
    for answer in (listed, found):
        assert "from lists of tools on disk" in answer.err
    assert gloveport("tools", "list", "--json").document["cached_seconds"].keys() == {"one", "two"}
    assert gloveport("tools", "list", "one").out.count("look_up") == 1
    assert gloveport("tools", "describe", "one.look_up").code == 0
    assert started(servers) == ["one", "one"]


@pytest.mark.integration
def test_sources_that_are_not_open_get_one_neutral_line(servers: Path) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "gloveport" / "gloveport.toml"
    config.write_text(config.read_text() + '[sources.gone]\nopenapi = "nowhere.json"\n')
    assert [gloveport("tools", "list", name).code for name in ("one", "two", "gone")] == [0, 0, 7]
    listed = gloveport("tools", "list")
    assert (listed.code, listed.out.count("look_up")) == (7, 2)
    assert "not open: gone (`gloveport sources` says why)" in listed.err
    assert "✗" not in listed.err
    described = gloveport("tools", "describe", "two.look_up")
    assert (described.code, described.err) == (0, "")
    assert "nowhere.json" in gloveport("sources", patient=True).err


def definition(*names: str) -> str:
    paths = {f"/{name}": {"get": {"operationId": name, "summary": f"The {name}.", "responses": {}}} for name in names}
    servers = [{"url": "https://shop.example.com"}]
    return json.dumps({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": servers, "paths": paths})


@pytest.mark.integration
def test_a_list_ends_with_a_change_of_the_file_and_of_what_was_accepted(folder: Path) -> None:
    (folder / "shop.json").write_text(definition("orders"))
    assert gloveport("add", "shop.json", "--yes").code == 0
    assert "on disk" in gloveport("tools", "list").err
    (folder / "shop.json").write_text(definition("orders", "refunds"))
    listed = gloveport("tools", "list", patient=True)
    assert "shop.refunds" in listed.out
    assert "on disk" not in listed.err
    config = load_config().sources[0]
    assert list(cached_lists([config])) == ["shop"]
    Pins.of_user().pin(config.pin_key, PinnedDefinition({}))
    assert cached_lists([config]) == {}


@pytest.mark.integration
def test_a_definition_in_a_file_is_waited_for_on_a_busy_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "shop.json").write_text(definition("orders"))
    assert gloveport("add", "shop.json", "--yes").code == 0
    monkeypatch.setattr(source_opener, "SOURCE_WAIT_SECONDS", 0)
    (folder / "shop.json").write_text(definition("orders", "refunds"))
    view = ViewOptions(as_json=False, color="never", config=None, pages=False)
    assert list_command(view, None) == 0
    assert "shop.refunds" in capsys.readouterr().out


@pytest.mark.integration
def test_a_list_that_is_damaged_is_read_again_from_its_source(folder: Path) -> None:
    (folder / "shop.json").write_text(definition("orders"))
    assert gloveport("add", "shop.json", "--yes").code == 0
    (cached,) = cached_lists(load_config().sources).values()
    for text in ("[[1]]", "not JSON", "[[1, 2, 3, 4, 5, 6, 7]]", '[["a.b", "", "", 0, 0, [], 7]]'):
        cached.path.write_text(text)
        assert "shop.orders" in gloveport("tools", "search", "orders", patient=True).out
        cached.path.write_text(text)
        assert "shop.orders" in gloveport("tools", "list", patient=True).out


@pytest.mark.integration
def test_an_index_that_is_damaged_is_built_again(folder: Path) -> None:
    (folder / "shop.json").write_text(definition("orders"))
    assert gloveport("add", "shop.json", "--yes").code == 0
    assert "shop.orders" in gloveport("tools", "search", "orders").out
    (index,) = (cache_folder() / "tools").glob("*.sqlite")
    for damage in ("UPDATE words SET weights = x'00'", "UPDATE words SET tools = x'ffffffff'", "DROP TABLE words"):
        with closing(sqlite3.connect(index)) as database, database:
            database.execute(damage)
        for _ in range(2):
            found = gloveport("tools", "search", "orders")
            assert (found.code, found.out.count("shop.orders")) == (0, 1), damage


@pytest.mark.integration
def test_a_search_of_5000_tools_in_a_fresh_process_takes_little_time(folder: Path) -> None:
    names = [
        f"{verb}_{noun}_{number}" for verb in ("list", "create") for noun in ("order", "refund") for number in range(1250)
    ]
    (folder / "shop.json").write_text(definition(*names))
    assert gloveport("add", "shop.json", "--yes").code == 0
    assert "among 5,000 tools" in gloveport("tools", "search", "refund 17").err

    loaded = gloveport("tools", "search", "refund 17", PYTHONPROFILEIMPORTTIME="1").err
    assert "gloveport.catalog.search" in loaded
    assert not re.search(r"gloveport\.(types|rules|host)\b|asyncio", loaded)  # each takes a tenth of the time

    def cpu_seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment(), capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    start = min(cpu_seconds(sys.executable, "-c", "pass") for _ in range(3))
    for query in (
        "refund 17",
        "rfund 17",
        "find the orders of the customer who wants a refund for what was broken on the way",
    ):
        assert min(cpu_seconds(*COMMAND, "tools", "search", query) for _ in range(3)) - start < MAX_CPU_SECONDS


@pytest.mark.integration
def test_in_a_narrow_terminal_a_description_goes_below_its_tool(folder: Path) -> None:
    (folder / "shop.json").write_text(definition("orders_of_a_customer_by_day"))
    assert gloveport("add", "shop.json", "--yes").code == 0
    with terminal("tools", "list", columns=40) as opened:
        shown = opened.rest()[1].splitlines()
    assert shown[:2] == ["  shop.orders_of_a_customer_by_day", "    \x1b[2mThe orders_of_a_customer_by_day.\x1b[0m"]
