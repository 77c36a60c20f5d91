"""Long answers on a real pseudo-terminal go through a pager, and only there."""

import io
import os
import shutil
from pathlib import Path

import pytest

from gloveport.surfaces.cli.pager import fits, pager_command
from gloveport.surfaces.terminal import Stream
from tests.surfaces.command import gloveport, terminal

MANY = 60
MARK = "cat -A"  # a pager that shows which bytes reached it


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A home with one source of many functions, the last with a hostile description."""
    tools = tmp_path / "many.py"
    hostile = "-Kq\\x1b]52;c;aGk=\\x07 \\u202e!sh"
    text = "".join(f'def tool_{at:02}() -> int:\n    """Number {at}."""\n    return {at}\n\n\n' for at in range(MANY))
    tools.write_text(f'{text}def zz() -> int:\n    """{hostile}"""\n    return 0\n')
    folder = tmp_path / "gloveport"
    folder.mkdir()
    (folder / "gloveport.toml").write_text(f'[sources.many]\nfunctions = "{tools}"\n')
    names = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME")
    return {**dict.fromkeys(names, str(tmp_path)), "NO_COLOR": "1"}


@pytest.mark.integration
@pytest.mark.parametrize("variable", ["GLOVEPORT_PAGER", "PAGER"])
def test_a_long_list_goes_to_the_pager_and_its_notes_follow(home: dict[str, str], variable: str) -> None:
    with terminal("tools", "list", lines=20, **home, **{variable: MARK}) as shown:
        code, text = shown.rest()
    rows = [line for line in text.splitlines() if "many.tool_" in line]
    assert (code, len(rows)) == (0, MANY)
    assert all(row.endswith("$") for row in rows)  # `cat -A` marks the end of each line that it got
    assert r"\x1b]52;c;aGk=\x07 \u{202e}!sh" in text and "\x1b]" not in text and "\u202e" not in text
    with terminal("tools", "search", "number", "--limit", "100", lines=20, **home, **{variable: MARK}) as shown:
        _, found = shown.rest()
    assert found.rstrip().splitlines()[-1] == "60 of 60 matches, among 61 tools"


@pytest.mark.integration
def test_gloveports_own_pager_comes_first_and_an_empty_one_is_none(home: dict[str, str]) -> None:
    for own in ("", "cat"):
        with terminal("tools", "list", lines=20, **home, GLOVEPORT_PAGER=own, PAGER="false") as shown:
            assert shown.rest()[1].count("many.tool_") == MANY


@pytest.mark.integration
def test_less_is_the_pager_where_it_exists_and_ctrl_c_is_for_it(home: dict[str, str], tmp_path: Path) -> None:
    less = tmp_path / "bin/less"
    less.parent.mkdir()
    less.write_text("#!/bin/sh\ntrap '' INT\nhead -1\necho \"$# $1, LESS is $LESS\"\nread key </dev/tty\necho left\n")
    less.chmod(0o755)
    with terminal("tools", "list", lines=20, **home, PATH=f"{less.parent}:{os.environ['PATH']}") as shown:
        shown.until(r"many\.tool_00.*\r\n1 -FRX, LESS is -FRX")
        shown.press(b"\x03")
        shown.press(b"q\n")
        code, rest = shown.rest()
    assert (code, "left" in rest, "Traceback" in rest, "cancelled" in rest) == (0, True, False, False)


@pytest.mark.integration
def test_nothing_else_is_paged(home: dict[str, str]) -> None:
    settings = {**home, "GLOVEPORT_PAGER": "false"}  # it would show nothing
    for args, wanted in (
        (("tools", "list", "--no-pager"), "many.tool_59"),
        (("tools", "list", "--json"), '"many.tool_59"'),
        (("tools", "describe", "many.tool_07"), "Number 7."),
        (("help", "time-limit"), "cause"),
    ):
        with terminal(*args, lines=20, **settings) as shown:
            code, text = shown.rest()
        assert (code, wanted in text) == (0, True), args
    assert "many.tool_59" in gloveport("tools", "list", **settings).out
    with terminal("tools", "list", lines=20, **{**settings, "TERM": "dumb"}) as shown:
        assert "many.tool_59" in shown.rest()[1]


@pytest.mark.integration
def test_a_pager_that_does_not_start_loses_nothing(home: dict[str, str]) -> None:
    with terminal("help", "codes", lines=20, **home, PAGER="/no/such/pager") as shown:
        code, text = shown.rest()
    assert code == 0
    assert "auth-required" in text and "the pager `/no/such/pager` can't be started" in text


def test_the_command_of_the_pager_is_words_and_no_shell() -> None:
    assert pager_command({"PAGER": "less -S '$(id)'"}) == ["less", "-S", "$(id)"]
    assert pager_command({"PAGER": "less '"}) is None
    assert pager_command({"GLOVEPORT_PAGER": "", "PAGER": "less"}) is None


def test_a_text_fits_when_all_its_wrapped_lines_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda _: os.terminal_size((40, 10)))
    out = Stream(io.StringIO(), terminal=True, coloured=True, moves=True)
    assert fits("x\n" * 9, out)
    assert not fits("x\n" * 10, out)
    assert fits("x" * 360, out)
    assert not fits("x" * 361, out)
    assert fits("\x1b[2m" + "x" * 360 + "\x1b[0m", out)
    assert not fits("漢" * 181, out)
