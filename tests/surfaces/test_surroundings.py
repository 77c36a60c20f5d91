"""What `gloveport doctor` says about sources, clients, clock and disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import gloveport
from gloveport.surfaces.cli.start import surroundings as module
from gloveport.surfaces.cli.start.surroundings import Finding, surroundings


@pytest.fixture
def home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def _found() -> dict[str, Finding]:
    return {finding.name: finding for finding in await surroundings()}


async def test_nothing_configured_is_no_problem(home: Path) -> None:
    found = await _found()
    assert {name: finding.ok for name, finding in found.items()} == dict.fromkeys(
        ("sources", "clients", "clock", "caches"), True
    )


async def test_sources_are_opened_and_a_broken_one_has_its_reason(home: Path, folder: Path) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "gloveport" / "gloveport.toml"
    config.parent.mkdir(parents=True)
    (folder / "people.py").write_text("def greet() -> str:\n    return 'hello'\n")
    config.write_text(f'[sources.people]\nfunctions = "{folder}/people.py"\n[sources.gone]\nopenapi = "nowhere.json"\n')
    found = await _found()
    assert found["people"] == Finding("people", True, "1 tool")
    assert not found["gone"].ok
    assert "nowhere.json" in found["gone"].detail
    config.write_text("[sources")
    assert not (await _found())["settings"].ok


async def test_a_client_is_connected_or_gets_the_command_for_it(home: Path) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"gloveport": {"command": "gloveport", "args": ["mcp"]}}}))
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{}")
    found = await _found()
    assert found["Claude Code"].ok
    assert found["Cursor"].fix == "`gloveport connect cursor` connects it"


async def test_a_clock_that_is_behind_is_noticed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = os.stat(gloveport.__file__).st_mtime
    monkeypatch.setattr(module.time, "time", lambda: installed - 10 * 24 * 3600)
    assert not (await _found())["clock"].ok
