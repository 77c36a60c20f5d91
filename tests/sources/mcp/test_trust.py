"""A command from a project's file is started only after its exact argv was approved, and no shell ever reads it (M6)."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gloveport.errors import SourceError
from gloveport.sources.trust import needs_trust, trust
from gloveport.trust_store import TRUST_FILE
from tests.sources.mcp.support import LIBRARY, call, on_stdio, opened

METACHARACTERS = [
    "$(touch canary)",
    "`touch canary`",
    "; touch canary",
    "| tee canary",
    "a b",
    "*",
    "~",
    "$HOME",
    "\n",
    "'\"",
    "-",
]


@pytest.fixture
def spy(tmp_path: Path) -> tuple[str, Path]:
    """A command that leaves a trace when it is started."""
    trace = tmp_path / "trace"
    command = tmp_path / "spy"
    command.write_text(
        f'#!/bin/sh\nfor each in "$@"; do printf "%s\\0" "$each"; done >> {trace}\necho started >> {trace}\n'
    )
    command.chmod(0o755)
    return str(command), trace


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


async def test_an_unapproved_command_of_a_project_is_not_started(spy: tuple[str, Path]) -> None:
    command, trace = spy
    config = on_stdio(command, "--flag\x1b[2J", settings="/project/gloveport.toml")
    with pytest.raises(SourceError, match="is not trusted yet") as caught:
        async with opened(config):
            pass
    assert not trace.exists()
    assert caught.value.hint and "gloveport tools trust it" in caught.value.hint
    assert "\x1b" not in caught.value.message  # a terminal shows what would be started, and nothing else (B9)


@pytest.mark.integration
async def test_an_approved_command_is_started_and_needs_no_second_approval() -> None:
    program, script = map(Path, LIBRARY)
    config = on_stdio(str(program), script.name, settings=str(script.with_name("gloveport.toml")))  # relative to that
    assert needs_trust(config)
    trust(config)
    assert not needs_trust(config)
    for _ in range(2):
        async with opened(config) as source:
            assert await call(source, "add", a=1, b=2) == {"result": 3}


def test_what_is_approved_is_that_and_nothing_else(tmp_path: Path) -> None:
    config = on_stdio("node", "server.js", "a b", settings="/project/gloveport.toml", env={"MODE": "x"})
    trust(config)
    assert not needs_trust(config)
    others = [
        replace(config, location=("node", "server.js", "a", "b")),
        replace(config, location=("node", "server.js")),
        replace(config, location=("node", "other.js", "a b")),
        replace(config, env={"MODE": "x", "NODE_OPTIONS": "--require ./evil.js"}),
        replace(config, env={"MODE": "y"}),
        replace(config, env={}),
        replace(config, settings="/another/project/gloveport.toml"),
    ]
    assert all(needs_trust(other) for other in others)


def test_what_the_user_wrote_himself_needs_no_approval() -> None:
    assert not needs_trust(on_stdio("node", "server.js"))


def test_approvals_are_for_their_user_alone_and_a_damaged_file_approves_nothing(tmp_path: Path) -> None:
    config = on_stdio("node", settings="/project/gloveport.toml")
    trust(config)
    file = tmp_path / "data" / "gloveport" / TRUST_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (row,) = json.loads(file.read_text()).values()
    assert row["does"] == "starts 'node'"
    for damaged in ("", "[]", "{", "null", '{"": 1}'):
        file.write_text(damaged)
        assert needs_trust(config)


@pytest.mark.integration
async def test_metacharacters_are_passed_to_the_command_as_they_are(spy: tuple[str, Path], tmp_path: Path) -> None:
    command, trace = spy
    with pytest.raises(SourceError):  # the spy is no server
        async with opened(on_stdio(command, *METACHARACTERS)):
            pass
    seen = trace.read_text().partition("started")[0].split("\0")[:-1]
    assert seen == METACHARACTERS
    assert "canary" not in os.listdir(tmp_path) + os.listdir()


async def test_a_source_without_a_command_is_refused() -> None:
    with pytest.raises(SourceError, match="no command"):
        async with opened(on_stdio()):
            pass
