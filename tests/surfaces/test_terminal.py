"""`gloveport run` on a real pseudo-terminal, and the functions that make text safe to show."""

import io
import os
import re
from pathlib import Path

import pytest

from gloveport.errors import OptionError
from gloveport.prepare.diagnostics import frame
from gloveport.surfaces.cli.run.outcome_report import fit_frame, write_problem
from gloveport.surfaces.terminal import Stream, cells, clip, in_time, visible, visible_json, visible_line
from tests.surfaces.command import TOOLS, gloveport, terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.integration
def test_parallel_calls_have_a_live_line_each_until_they_end(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for fifo in (first, second):
        os.mkfifo(fifo)
    program = "console.log('begun'); const got = await Promise.all(input.map((fifo) => tools.hold({fifo}))); got.join()"
    pair = f'["{first}", "{second}"]'
    with terminal("run", "--tools", TOOLS, "--input", pair, "-e", program, NO_COLOR="1", columns=200) as shown:
        running = shown.until(r"[⠀-⣿] call  some_tools.hold\(.*first.*\n[⠀-⣿] call  some_tools.hold\(.*second.*\n")
        assert "  log   begun" in running
        first.write_text("one")
        after = shown.until(r"✓ call  some_tools.hold\(.*first.*\n[⠀-⣿] call  some_tools.hold\(.*second.*\n")
        assert "\x1b[2A\x1b[J" in after  # the two live lines are removed before the finished one is written
        second.write_text("two")
        code, rest = shown.rest()
    assert code == 0
    assert re.search(r"✓ call  some_tools.hold\(.*second", rest)
    assert "\none,two\n" in rest
    assert re.search(r"completed in .* · 2 calls · \d+ MB · deno\n$", rest)


@pytest.mark.integration
def test_a_program_that_computes_has_a_line_with_its_time(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = "await tools.hold({fifo: input}); for (;;);"
    with terminal("run", "--tools", TOOLS, "--input", f'"{fifo}"', "-e", program, NO_COLOR="1", columns=60) as shown:
        shown.until(r"[⠀-⣿] call  some_tools.hold")
        fifo.write_text("one")
        shown.until(r"✓ call  some_tools.hold")
        shown.until(r"[⠀-⣿] run   the program runs  \d[^\n]* m?s\r\n\r\x1b\[1A\x1b\[J[⠀-⣿] run   the program runs  ")
        shown.press(b"\x03")
        _, rest = shown.rest()
    left = rest.rpartition("\x1b[1A\x1b[J")[2]  # what stays on the screen after the last such line
    assert left == "✗ cancelled: the run was cancelled\n"


@pytest.mark.integration
def test_a_run_shows_which_source_it_waits_for(tmp_path: Path) -> None:
    (tmp_path / "gloveport").mkdir()
    (tmp_path / "gloveport/gloveport.toml").write_text('[sources.sleepy]\nmcp = ["sleep", "1000"]\n')
    with terminal("run", "-e", "await tools.sleepy.hello()", NO_COLOR="1", XDG_CONFIG_HOME=str(tmp_path)) as shown:
        shown.until(r"[⠀-⣿] run   opening sleepy  \d")
        shown.press(b"\x03")
        code, rest = shown.rest()
    assert (code, "opening" in rest.rpartition("\x1b[J")[2]) == (130, False)


@pytest.mark.integration
def test_a_command_shows_what_it_waits_for_and_removes_that_line(tmp_path: Path) -> None:
    (tmp_path / "gloveport").mkdir()
    (tmp_path / "gloveport/gloveport.toml").write_text('[sources.sleepy]\nmcp = ["sleep", "1000"]\ntimeout_seconds = 2\n')
    with terminal("tools", "list", "sleepy", NO_COLOR="1", XDG_CONFIG_HOME=str(tmp_path)) as shown:
        shown.until(r"\r\x1b\[K[⠀-⣿] opening sleepy … \d")
        code, rest = shown.rest()
    assert code == 7
    assert rest.rpartition("\r\x1b[K")[2].startswith("✗ ")


@pytest.mark.integration
def test_no_progress_goes_into_a_pipe_or_a_quiet_run() -> None:
    for args in ((), ("--quiet",)):
        done = gloveport("run", *args, "--timeout", "1", "-e", "for (;;);")
        assert (done.code, "\x1b" in done.err, "the program runs" in done.err) == (6, False, False)
    with terminal("run", "--quiet", "--timeout", "1", "-e", "for (;;);", NO_COLOR="1") as shown:
        code, rest = shown.rest()
    assert (code, rest.startswith("✗ time-limit")) == (6, True)


@pytest.mark.integration
def test_more_calls_than_lines_are_counted(tmp_path: Path) -> None:
    program = "await Promise.all(Array.from({length: 20}, () => tools.forever()))"
    with terminal("run", "--tools", TOOLS, "-e", program, NO_COLOR="1", lines=10) as shown:
        shown.until(r"13 more calls are running")
        shown.press(b"\x03")
        code, rest = shown.rest()
    assert code == 130
    assert "cancelled: some_tools.forever (× 20)" in rest
    assert "✗ cancelled: the run was cancelled" in rest


@pytest.mark.integration
def test_ctrl_c_ends_a_busy_program() -> None:
    with terminal("run", "-e", "console.log('begun'); for (;;);", NO_COLOR="1") as shown:
        shown.until("begun")
        shown.press(b"\x03")
        code, rest = shown.rest()
    assert code == 130
    assert "cancelled" in rest
    assert "Traceback" not in rest


@pytest.mark.integration
def test_nothing_of_a_program_drives_the_terminal_result_included() -> None:
    hostile = r"\x1b]52;c;aGk=\x07\u202e"
    with terminal("run", "-e", f'console.log("{hostile}"); "{hostile}"', NO_COLOR="1") as shown:
        code, rest = shown.rest()
    assert code == 0
    assert rest.count(r"\x1b]52;c;aGk=\x07\u{202e}") == 2
    assert "\x1b]" not in rest
    assert "\u202e" not in rest


@pytest.mark.integration
def test_json_is_indented_for_people() -> None:
    with terminal("run", "--fields", "ok,value", "-e", "[1]") as shown:
        assert shown.rest() == (0, '{\n  "ok": true,\n  "value": [\n    1\n  ]\n}\n')


@pytest.mark.integration
def test_a_failure_on_a_terminal_names_the_page_that_explains_it() -> None:
    with terminal("run", "-e", "throw new Error('x')", NO_COLOR="1") as shown:
        code, rest = shown.rest()
    assert code == 1
    assert "more: gloveport help program-failed" in rest


@pytest.mark.integration
@pytest.mark.parametrize(
    ("env", "args", "coloured"),
    [
        ({}, (), True),
        ({"NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": ""}, (), True),
        ({"TERM": "dumb"}, (), False),
        ({}, ("--color", "never"), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, (), False),
    ],
)
def test_a_terminal_gets_colours_unless_told_otherwise(env: dict[str, str], args: tuple[str, ...], coloured: bool) -> None:
    with terminal("run", *args, "-e", "throw new Error('x')", **env) as shown:
        _, rest = shown.rest()
    assert bool(SGR.search(rest)) == coloured
    assert "✗ program-failed" in SGR.sub("", rest)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("env", "args", "coloured"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"FORCE_COLOR": "0"}, (), False),
        ({}, ("--color", "always"), True),
    ],
)
def test_a_pipe_gets_no_colours_unless_told_otherwise(env: dict[str, str], args: tuple[str, ...], coloured: bool) -> None:
    done = gloveport("run", *args, "-e", "throw new Error('x')", **env)
    assert bool(SGR.search(done.err)) == coloured


@pytest.mark.integration
def test_a_dumb_terminal_gets_plain_lines_and_no_cursor_movements() -> None:
    with terminal("run", "--tools", TOOLS, "-e", "await tools.greet('Ada')", TERM="dumb") as shown:
        code, rest = shown.rest()
    assert code == 0
    assert "\x1b" not in rest
    assert '✓ call  some_tools.greet({"name":"Ada"})' in rest


@pytest.mark.integration
@pytest.mark.parametrize("columns", [40, 60])
def test_at_narrow_widths_the_caret_stays_under_its_column(columns: int) -> None:
    program = f"const words = ['{'a word '}'.repeat(3), 1, 2, 3, 4, 5, 6, 7, 8]; const sum = words.lenght.toFixed(2) + ' of 漢字';"
    with terminal("run", "-e", program, NO_COLOR="1", columns=columns) as shown:
        _, text = shown.rest()
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.strip(" |") and not line.strip(" |^"))
    source, carets = lines[at - 1], lines[at]
    assert max(cells(source), cells(carets)) <= columns
    assert source[carets.index("^") :].startswith("toFixed")


# The functions


@pytest.mark.parametrize("columns", [20, 30, 60])
def test_a_frame_is_cut_around_its_mark_wherever_that_is(columns: int) -> None:
    text = "let 漢字 = call('éé', 漢字漢字漢字漢字, 12345678901234567890, \t'x'); done(漢);"
    for column in range(1, len(text) + 2):
        whole = frame(text, 1, column, length=2)
        source, carets = fit_frame(whole, columns)
        assert max(cells(source), cells(carets)) <= columns
        assert _marked(source, carets) == _marked(*whole.split("\n"))[: len(_marked(source, carets))]
        assert _marked(source, carets) or column > len(text)
    short = frame("a.b", 1, 3)
    assert fit_frame(short, columns) == short.split("\n")


def _marked(source: str, carets: str) -> str:
    """Return the characters above the carets."""
    places = {at for at, mark in enumerate(carets) if mark == "^"}
    return "".join(each for at, each in enumerate(source) if cells(source[:at]) in places)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢字 🙂 ❤️\n\ttab", "plain é 漢字 🙂 ❤️\n\ttab"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\x00\x08\x7f\x9b", r"\x00\x08\x7f\u{9b}"),
        ("\u202e\u2066\u200f\u061c", r"\u{202e}\u{2066}\u{200f}\u{61c}"),
        ("a\u200bb\ufeffc\u2060\xad", r"a\u{200b}b\u{feff}c\u{2060}\u{ad}"),
        ("\u2028\u2029", r"\u{2028}\u{2029}"),
        ("\U000e0041\U000e0100", r"\u{e0041}\u{e0100}"),
        ("\ud800", r"\u{d800}"),
        ("\u3164\uffa0\u115f", r"\u{3164}\u{ffa0}\u{115f}"),
    ],
)
def test_visible_writes_out_what_a_terminal_would_obey_or_hide(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_visible_line_stays_on_one_line() -> None:
    assert visible_line("a\nb\tc") == r"a\nb\tc"


def test_visible_json_escapes_as_json_does() -> None:
    assert visible_json('"\x7f\u202e\U000e0041"') == r'"\u007f\u202e\udb40\udc41"'


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    assert (cells("abc"), cells("漢字"), cells("e\u0301")) == (3, 4, 1)
    assert clip("漢字漢字", 5) == "漢字…"
    assert clip("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0001, "<1 ms"), (0.0123, "12 ms"), (0.99951, "1.0 s"), (1.25, "1.2 s"), (59.96, "1 min 0 s"), (75, "1 min 15 s")],
)
def test_times_read_well(seconds: float, text: str) -> None:
    assert in_time(seconds) == text


def test_an_error_breaks_between_words_and_never_inside_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    file = io.StringIO()
    hint = "first read what it says, then `gloveport policy set allow shop.pay` lets it through"
    write_problem(
        Stream(file, terminal=True, coloured=False), OptionError("a message that is longer\nthan a line", hint=hint)
    )
    shown = file.getvalue().split("\n")
    assert shown[:4] == ["✗ bad-option: a message that", "    is longer", "    than a line", "  hint: first read what it"]
    assert "    `gloveport policy set allow shop.pay`" in shown
