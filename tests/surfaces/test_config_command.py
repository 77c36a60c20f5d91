"""`gloveport config`: what a project's file sets without effect is reported, shown and trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.surfaces.command import gloveport

SETTINGS = "[limits]\nmemory_mb = 4096\nmax_calls = 3\n[sandbox]\nallow_eval = true\n"
PROGRAM = ("run", "-e", "eval('1 + 1')")
POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()

pytestmark = pytest.mark.integration


def test_untrusted_settings_have_no_effect_and_are_reported_once(folder: Path) -> None:
    (folder / "gloveport.toml").write_text(SETTINGS)
    ran = gloveport(*PROGRAM)
    assert ran.code == 1
    assert ran.err.count(f"{folder}/gloveport.toml:2: limits.memory_mb = 4096 is ignored (yours is 256)") == 1
    assert ran.err.count(f"{folder}/gloveport.toml:5: sandbox.allow_eval = True is ignored (yours is off)") == 1
    assert ran.err.count("`gloveport config trust`") == 1
    assert "is ignored" not in gloveport(*PROGRAM, "--quiet").err
    listed = gloveport("tools", "list")
    assert listed.err.count("is ignored") == 2


def test_trusted_settings_take_effect_until_one_changes(folder: Path) -> None:
    file = folder / "gloveport.toml"
    file.write_text(SETTINGS)
    refused = gloveport("config", "trust")
    assert (refused.code, "limits.memory_mb = 4096" in refused.err) == (2, True)
    assert gloveport(*PROGRAM).code == 1
    trusted = gloveport("config", "trust", "--yes", "--json")
    names = ["limits.memory_mb", "sandbox.allow_eval"]
    assert trusted.document == {"ok": True, "trusted": True, "settings": names}
    ran = gloveport(*PROGRAM)
    assert (ran.code, ran.out, ran.err) == (0, "2\n", "")
    again = gloveport("config", "trust", "--json")
    assert again.document == {"ok": True, "trusted": False, "settings": names}
    file.write_text(SETTINGS + "allow_wasm = true\n")
    assert gloveport(*PROGRAM).code == 1


def test_show_lists_every_setting_and_what_is_ignored(folder: Path) -> None:
    (folder / "tools.py").write_text("def hi(): ...\n")
    (folder / "gloveport.toml").write_text(SETTINGS + '[sources.tools]\nfunctions = "tools.py"\n')
    rows = {row["key"]: row for row in gloveport("config", "show", "--json").document["settings"]}
    assert rows["limits.max_calls"] == {
        "key": "limits.max_calls",
        "value": 3,
        "place": f"{folder}/gloveport.toml:3",
        "ignored": None,
    }
    assert rows["limits.memory_mb"]["ignored"] == "not trusted: yours is 256"
    assert "gloveport tools trust tools" in rows["sources.tools"]["ignored"]
    shown = gloveport("config", "show")
    assert "! limits.memory_mb = 4096" in shown.out
    assert "ignored: not trusted: yours is off" in shown.out
    assert shown.err.count("gloveport config trust") == 1
    (folder / "gloveport.toml").unlink()
    assert "every value is the default" in gloveport("config", "show").err


def test_hostile_text_in_a_setting_is_shown_harmless(folder: Path) -> None:
    (folder / "gloveport.toml").write_text('[sandbox]\nengines = ["\\u001b[2J\\u202e"]\n')
    for args in (("config", "show"), ("config", "trust"), ("tools", "list")):
        said = gloveport(*args)
        assert "\x1b" not in said.out + said.err
        assert "\u202e" not in said.out + said.err


@pytest.mark.parametrize(
    ("variable", "command", "problem"),
    [
        ("XDG_CONFIG_HOME", ("tools", "list"), "bad-option: the settings in {} can't be read: Permission denied"),
        ("XDG_DATA_HOME", ("serve", "--port", "0"), "bad-option: {}/token can't be used: Permission denied"),
        *(
            ("XDG_DATA_HOME", command, "store-unavailable: the store {}/store.sqlite can't be opened: Permission denied")
            for command in (("audit", "verify"), ("runs", "list"), ("agents", "list"), ("runs", "show", "abc"))
        ),
    ],
)
def test_a_folder_of_the_user_that_cannot_be_read_is_named(
    variable: str, command: tuple[str, ...], problem: str, folder: Path
) -> None:
    closed = folder.parent / variable / "gloveport"
    closed.mkdir(parents=True)
    closed.chmod(0)
    try:
        refused = gloveport(*command, prefix=POWERLESS)
    finally:
        closed.chmod(0o700)
    assert (refused.code, refused.err.splitlines()[0]) == (
        2 if "bad-option" in problem else 1,
        f"✗ {problem.format(closed)}",
    )
    assert "  hint: let this user read " in refused.err


def test_a_program_runs_where_nothing_can_be_stored(folder: Path) -> None:
    closed = folder.parent / "XDG_DATA_HOME" / "gloveport"
    closed.mkdir(parents=True)
    closed.chmod(0)
    try:
        done = gloveport("run", "-e", "1 + 1", prefix=POWERLESS)
    finally:
        closed.chmod(0o700)
    assert (done.code, done.out) == (0, "2\n")
    assert "can't be opened: Permission denied" in done.err
    assert "Traceback" not in done.err
