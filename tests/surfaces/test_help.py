"""Help pages, versions, suggestions, and what the command line loads to show its help."""

import re
import subprocess
import sys

import pytest

import gloveport as package
from gloveport.errors import CODES
from gloveport.surfaces.cli.commands import cli
from gloveport.surfaces.cli.help import EXIT_CODES
from tests.surfaces.command import environment, gloveport, terminal

pytestmark = pytest.mark.integration

COMMANDS = tuple(cli.commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_on_one_screen_with_examples_first(command: str) -> None:
    done = gloveport(command, "-h")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert lines[2].lstrip().startswith("gloveport ")
    assert gloveport(command, "--help").out == done.out == gloveport("help", command).out


def test_the_front_page_shows_every_command() -> None:
    front = gloveport("--help")
    assert front.code == 0
    assert len(front.out.splitlines()) <= 24
    rare = re.search(r"^  and also (.*)$", front.out, re.MULTILINE)
    assert rare
    for command in COMMANDS:
        assert f"\n  {command} " in front.out or command in rare[1].split(", ")
    assert gloveport().out == front.out == gloveport("help").out == gloveport("-h").out


@pytest.mark.parametrize("code", CODES)
def test_every_error_code_has_a_page(code: str) -> None:
    done = gloveport("help", code)
    assert done.code == 0
    assert CODES[code].cause in done.out
    assert CODES[code].advice in done.out


def test_the_lists_of_codes_are_complete() -> None:
    shown = gloveport("help", "exit-codes").out
    assert all(f" {number}  " in shown for number in EXIT_CODES)
    assert {row.exit for row in CODES.values()} <= set(EXIT_CODES)
    codes = gloveport("help", "codes").out
    assert all(f"  {code} " in codes for code in CODES)


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("rnu",), "did you mean `run`?"),
        (("docter",), "did you mean `doctor`?"),
        (("help", "time-limt"), "did you mean `time-limit`?"),
        (("help", "engine"), "did you mean `engines`?"),
        (("doctor", "--jsno"), "did you mean `--json`?"),
        (("connect", "claude-cod"), "did you mean `claude-code`?"),
        (("connect", "claude"), "did you mean `claude-code`?"),
        (("connect",), "`gloveport connect` needs claude-code|cursor|vscode|codex|gemini|zed"),
        (("tools", "search"), "`gloveport tools search` needs WORDS…"),
        (("help", "tools", "lst"), "there is no help on `tools lst`"),
        (("connect", "emacs"), "the clients are claude-code, cursor, vscode, codex, gemini, zed"),
        (("add", "x.json", "--kind", "opnapi"), "did you mean `openapi`?"),
        (("remove", "x", "--scope", "all"), "--scope takes project or user"),
        (("script.ts",), "to run a file, write `gloveport run script.ts`"),
        (("xyzzy",), f"the commands are {', '.join(COMMANDS)}"),
    ],
)
def test_a_wrong_word_gets_the_right_one(args: tuple[str, ...], hint: str) -> None:
    done = gloveport(*args)
    assert done.code == 2
    assert hint in done.err
    assert done.out == ""


def test_a_group_alone_and_the_words_of_a_command_below_it_show_their_pages() -> None:
    alone = gloveport("tools")
    assert (alone.code, alone.err) == (0, "")
    assert alone.out == gloveport("help", "tools").out == gloveport("tools", "--help").out
    assert gloveport("help", "tools", "list").out == gloveport("tools", "list", "--help").out


def test_version_names_the_versions_of_deno_and_python() -> None:
    assert gloveport("version").out.startswith(f"gloveport {package.__version__} · deno ")
    document = gloveport("version", "--json").document
    assert (document["ok"], document["version"]) == (True, package.__version__)
    assert document["engines"][0]["strength"] in ("full", "kernel", "none")
    assert gloveport("--version").out == f"gloveport {package.__version__}\n"


def test_the_command_line_loads_nothing_heavy_to_show_its_help() -> None:
    heavy = ("asyncio", "orjson", "msgspec", "jsonschema_rs", "tree_sitter", "gloveport.host.port", "gloveport.types")
    script = f"import sys, gloveport.surfaces.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_the_options_of_a_page_fit_a_narrow_terminal() -> None:
    with terminal("run", "--help", columns=60) as opened:
        _, shown = opened.rest()
    rows = shown.partition("Usage: ")[2].splitlines()[1:]
    assert any("--timeout" in row for row in rows)
    assert max(len(row) for row in rows) <= 60
