"""`gloveport run` through pipes: what goes to stdout and stderr, and the exit code of each outcome."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from gloveport.surfaces.documents import FIELDS
from tests.surfaces.command import REPOSITORY, TOOLS, all_end, descendants, gloveport, read_until, started

pytestmark = pytest.mark.integration


def test_an_engine_can_be_named_and_brings_its_language() -> None:
    assert gloveport("run", "--engine", "monty", "-e", "sum([1, 2])").out == "3\n"
    lacking = gloveport("run", "--engine", "monty", "-e", "class A(B): pass", "--json")
    assert (lacking.code, lacking.document["error"]["code"]) == (1, "engine-lacks")
    wrong = gloveport("run", "--engine", "monty", "--language", "typescript", "-e", "1")
    assert wrong.code == 2
    assert "monty does not run typescript" in wrong.err


def test_a_number_is_printed_as_json_and_nothing_else_is_printed() -> None:
    done = gloveport("run", "-e", "1 + 1")
    assert (done.code, done.out, done.err) == (0, "2\n", "")


def test_a_string_is_printed_as_it_is() -> None:
    assert gloveport("run", "-e", "'two\\nlines \\u00e9'").out == "two\nlines é\n"


def test_an_object_is_printed_as_indented_json() -> None:
    done = gloveport("run", "-e", "({a: [1], when: new Date(0)})")
    assert done.out == '{\n  "a": [\n    1\n  ],\n  "when": "1970-01-01T00:00:00.000Z"\n}\n'


@pytest.mark.parametrize("code", ["", "undefined", "null", "const x = 1;"])
def test_nothing_is_printed_for_nothing(code: str) -> None:
    done = gloveport("run", "-e", code)
    assert (done.code, done.out) == (0, "")


def test_calls_logs_and_emitted_values_go_to_stderr_one_plain_line_each() -> None:
    program = "console.log('a'); console.warn('b'); emit({c: 1}); await tools.greet({name: 'Ada'})"
    done = gloveport("run", "--tools", TOOLS, "-e", program)
    lines = done.err.splitlines()
    assert done.out == "hello Ada\n"
    assert lines[:3] == ["  log   a", "! warn  b", '» emit  {"c":1}']
    assert lines[3].startswith('✓ call  some_tools.greet({"name":"Ada"})  ')
    assert "\x1b" not in done.err


def test_quiet_leaves_only_the_result_and_the_error() -> None:
    done = gloveport("run", "--quiet", "-e", "console.log('a'); throw new Error('b')")
    assert done.code == 1
    assert "  log" not in done.err
    assert "program-failed: b" in done.err


@pytest.mark.parametrize(
    ("code", "args", "exit_code", "error"),
    [
        ("throw new Error('x')", (), 1, "program-failed"),
        ("const x = ;", (), 1, "syntax-error"),
        ("await new Promise(() => {})", (), 1, "never-settles"),
        ("() => () => 1", (), 1, "bad-value"),
        ("await tools.gret({name: 'a'})", (), 1, "unknown-tool"),
        ("await tools.greet({nam: 'a'})", (), 1, "bad-arguments"),
        ("for (;;);", ("--timeout", "0.3"), 6, "time-limit"),
        ("for (;;);", ("--cpu", "0.3"), 6, "cpu-limit"),
        ("const a = []; for (;;) a.push('x'.repeat(1e6) + a.length)", ("--memory", "32"), 6, "memory-limit"),
        ("for (let i = 0; i < 2000; i++) await tools.greet({name: 'a'})", (), 6, "call-limit"),
        ("await tools.fail()", (), 7, "tool-failed"),
        ("await tools.refuse()", (), 7, "out-of-stock"),
        ("await tools.deny()", (), 7, "denied"),
        ("await tools.greet({name: 'a'}); class Own extends ToolError {}; throw new Own('x')", (), 1, "program-failed"),
    ],
)
def test_every_way_to_fail_has_its_exit_code(code: str, args: tuple[str, ...], exit_code: int, error: str) -> None:
    done = gloveport("run", "--tools", TOOLS, "--json", "-e", code, *args)
    assert (done.code, done.document["error"]["code"]) == (exit_code, error)


def test_a_tools_own_code_is_never_shown_as_a_decision_of_gloveport() -> None:
    done = gloveport("run", "--tools", TOOLS, "-e", "await tools.deny()")
    assert done.code == 7
    assert done.err.splitlines()[1:] == [
        "        tool error denied: ask your manager",
        "✗ tool error denied: tools.some_tools.deny: ask your manager",
        "  line 1, column 13",
        "    1 | await tools.deny()",
        "      |             ^",
    ]


def test_a_limit_names_the_option_that_raises_it() -> None:
    done = gloveport("run", "--timeout", "0.3", "-e", "for (;;);")
    assert "  hint: Do less in one run; look for a loop that never ends." in done.err
    assert "  setting: raise wall_seconds (--timeout)" in done.err


def test_an_error_shows_where_it_is_with_a_caret_and_what_caused_it() -> None:
    program = "const a = 1;\nthrow new TypeError('bad', {cause: new Error('deep')});"
    done = gloveport("run", "-e", program)
    assert done.err.splitlines() == [
        "✗ program-failed: TypeError: bad",
        "  line 2, column 7",
        "    2 | throw new TypeError('bad', {cause: new Error('deep')});",
        "      |       ^",
        "  caused by: deep (line 2, column 36)",
    ]


def test_a_sandbox_below_the_minimum_refuses_the_run_with_the_reason_and_exit_code_8() -> None:
    # In a user namespace of its own, in which no further one can be created.
    nowhere = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh")
    done = gloveport("run", "--minimum", "full", "-e", "1", prefix=nowhere)
    assert done.code == 8
    assert "sandbox-unavailable" in done.err
    assert "hint:" in done.err
    assert "Traceback" not in done.err


# --json


def test_json_is_one_document_with_every_field() -> None:
    done = gloveport("run", "--json", "--tools", TOOLS, "-e", "console.log('a'); emit(1); await tools.greet('Ada')")
    document = done.document
    assert tuple(document) == FIELDS
    assert (document["ok"], document["status"], document["value"]) == (True, "completed", "hello Ada")
    assert document["logs"] == [{"level": "log", "text": "a"}]
    assert document["emitted"] == [1]
    assert (document["calls"][0]["args"], document["calls"][0]["status"]) == ({"name": "Ada"}, "ok")
    assert document["error"] is None
    assert done.err == ""


def test_json_of_a_failure_has_the_whole_error() -> None:
    document = gloveport("run", "--json", "--tools", TOOLS, "-e", "\n await tools.refuse()").document
    error = document["error"]
    assert (document["ok"], document["status"]) == (False, "failed")
    assert (error["code"], error["type"], error["line"], error["data"]) == ("out-of-stock", "ToolError", 2, {"left": 0})
    assert error["message"] == "not in stock"
    assert {"code", "message", "hint", "data"} <= set(error)  # like the errors of every other command


def test_fields_selects_and_orders_the_fields() -> None:
    assert gloveport("run", "--fields", "value,status", "-e", "3").out == '{"value":3,"status":"completed"}\n'


@pytest.mark.parametrize("args", [("--timeout", "90s"), ("--nonsense",), ("--fields", "nope"), ("missing.ts",)])
def test_json_of_a_command_that_is_not_understood_is_one_document_too(args: tuple[str, ...]) -> None:
    done = gloveport("run", "--json", *args)
    assert done.code == 2
    assert tuple(done.document) == ("ok", "error")
    assert tuple(done.document["error"]) == ("code", "message", "hint", "data")
    assert (done.document["ok"], done.document["error"]["code"]) == (False, "bad-option")
    assert done.err == ""


def test_what_tools_print_never_reaches_stdout() -> None:
    done = gloveport("run", "--json", "--tools", TOOLS, "-e", "await tools.print_much()")
    assert done.document["value"] == 1
    for text in ("printed by python", "written to descriptor 1", "echoed by a shell"):
        assert text in done.err


# Where the program comes from


def test_a_program_comes_from_a_file_in_the_language_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text("const n: number = 5; n")
    (tmp_path / "b.mjs").write_text("export default 6")
    assert gloveport("run", "a.ts", cwd=tmp_path).out == "5\n"
    assert gloveport("run", "b.mjs", cwd=tmp_path).out == "6\n"


@pytest.mark.parametrize("args", [("-",), ()])
def test_a_program_comes_from_standard_input(args: tuple[str, ...]) -> None:
    assert gloveport("run", *args, stdin="return 7").out == "7\n"


@pytest.mark.parametrize("name", ["typescript", "ts", "TS", "javascript", "js"])
def test_a_language_has_a_long_and_a_short_name(name: str) -> None:
    assert gloveport("run", "--language", name, "-e", "const n = 5; n").out == "5\n"


def test_input_comes_as_json_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("[1, 2]")
    assert gloveport("run", "-e", "input.n", "--input", '{"n": 3}').out == "3\n"
    assert gloveport("run", "-e", "input.length", "--input", "@in.json", cwd=tmp_path).out == "2\n"
    assert gloveport("run", "-e", "input", "--input", "@-", stdin="4").out == "4\n"


def test_env_gives_variables_and_no_others() -> None:
    done = gloveport("run", "-e", "Object.entries(process.env)", "--env", "A=1=2", "--env", "B=", "--fields", "value")
    assert done.document["value"] == [["A", "1=2"], ["B", ""]]


def test_tools_come_from_a_module_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def three() -> int:\n    return 3\n\ndef _hidden() -> int:\n    return 4\n")
    done = gloveport("run", "--tools", "mine", "-e", "[await tools.three(), Object.keys(tools)]", cwd=tmp_path)
    value = json.loads(done.out)
    assert value[0] == 3
    assert "three" in value[1]
    assert "_hidden" not in value[1]


def test_the_demo_runs_and_shows_result_logs_and_calls() -> None:
    done = gloveport("run", "examples/demo.ts", "--tools", "examples/demo_tools.py", cwd=REPOSITORY)
    assert done.code == 0
    assert json.loads(done.out)["total_eur"] == 291.18
    assert done.err.count("✓ call") == 10
    assert "ada has 3 open orders" in done.err


# Mistakes on the command line


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-e", "1", "--timeout", "90s"), "--timeout 90"),
        (("-e", "1", "--timeout", "nan"), "finite"),
        (("-e", "1", "--timeout", "-1"), "above 0"),
        (("-e", "1", "--cpu", "0"), "above 0"),
        (("-e", "1", "--memory", "64MB"), "whole number of megabytes"),
        (("-e", "1", "--memory", "1"), "from 16"),
        (("-e", "1", "--minimum", "strong"), "full"),
        (("-e", "1", "script.ts"), "two programs"),
        (("missing.ts",), "there is no file missing.ts"),
        (("await tools.get_weather()",), "write `gloveport run -e"),
        ((f"console.log('{'x' * 300}')",), "write `gloveport run -e"),
        ((".",), "is a directory"),
        (("bad.ts",), "not UTF-8"),
        (("a.rb",), "--language"),
        ((), "there is no program"),
        (("-",), "there is no program"),
        (("-e", "1", "--language", "typscript"), "did you mean `typescript`?"),
        (("-e", "1", "--input", "{n: 1}"), "is not JSON"),
        (("-e", "1", "--input", "NaN"), "is not JSON"),
        (("-e", "1", "--env", "NAME"), "NAME=VALUE"),
        (("-e", "1", "--tools", "no_such_module"), "no_such_module"),
        (("-e", "1", "--tools", "none.py"), "there is no file"),
        (("-", "--input", "@-"), "both the program and its input"),
        (("-e", "1", "--jsn"), "did you mean `--json`?"),
        (("-e", "1", "--fields", "stauts"), "did you mean `status`?"),
    ],
)
def test_a_mistake_on_the_command_line_says_what_to_write(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.ts").write_bytes(b"\xff\xfe1")
    (tmp_path / "a.rb").write_text("1")
    done = gloveport("run", *args, cwd=tmp_path)
    assert done.code == 2
    assert message in done.err + done.out
    assert "Traceback" not in done.err


def test_a_program_that_is_too_long_is_refused_without_reading_all_of_it() -> None:
    done = gloveport("run", "/dev/zero", "--language", "ts", "--json")
    assert (done.code, done.document["error"]["code"]) == (6, "code-too-large")


# Text that would drive a terminal (M15)

HOSTILE = r"\x1b[31mred \x1b]52;c;aGk=\x07 \x9b2J \u202eback \u200bhidden \u2066 \r over \u{e0041}"


@pytest.mark.parametrize(
    "program",
    [
        f'console.log("{HOSTILE}")',
        f'emit("{HOSTILE}")',
        f'emit({{"{HOSTILE}": "{HOSTILE}"}})',
        f'throw new Error("{HOSTILE}", {{cause: "{HOSTILE}"}})',
        f'const e = new Error("a"); e.name = "{HOSTILE}"; throw e',
        f'tools.greet("{HOSTILE}"); 1',
        f'Promise.reject(new Error("{HOSTILE}")); 1',
        "await tools.evil()",
        'throw new ToolError("x", {code: "\\x1b[2J", tool: "\\x1b[2J", hint: "\\x1b[2J\\u202e"})',
    ],
)
def test_no_text_of_a_program_reaches_stderr_as_something_that_a_terminal_obeys(program: str) -> None:
    done = gloveport("run", "--tools", TOOLS, "-e", program)
    assert not [character for character in done.err if not (character.isprintable() or character == "\n")]
    assert re.search(r"\\x1b|\\u001b", done.err)


def test_no_line_of_a_log_can_pass_for_a_line_of_ours() -> None:
    done = gloveport("run", "-e", r"console.log('a\n✓ call  pay({})  1 ms\r\n✗ denied')")
    assert done.err.splitlines() == ["  log   a", "        ✓ call  pay({})  1 ms", "        ✗ denied"]


def test_a_string_result_goes_into_a_pipe_untouched() -> None:
    assert gloveport("run", "-e", r"'\x1b[31mred'").out == "\x1b[31mred\n"


def test_json_output_means_the_same_with_every_character_visible() -> None:
    done = gloveport("run", "--json", "-e", f'"{HOSTILE}"')
    assert done.out.rstrip("\n").isprintable()
    assert done.document["value"].startswith("\x1b[31mred \x1b]52;c;aGk=\x07 \x9b2J \u202eback \u200b")
    assert done.document["value"].endswith("\U000e0041")


# Ctrl-C


@pytest.mark.parametrize("program", ["for (;;);", "await tools.forever()", "await tools.hold(input)"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_leaves_nothing_behind(program: str, number: signal.Signals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    fifo = json.dumps(str(tmp_path / "fifo"))
    program = f"console.log('begun'); {program}"
    with started("run", "--tools", TOOLS, "--input", fifo, "-e", program) as process:
        assert process.stderr is not None
        read_until(process.stderr.fileno(), "begun")
        below = descendants(process.pid)
        assert len(below) >= 2  # the fork server and the guest
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"cancelled" in err
    assert b"Traceback" not in err
    assert out == b""
    assert all_end(below)


def test_a_cancelled_run_is_one_json_document_too() -> None:
    with started("run", "--json", "--tools", TOOLS, "-e", "await tools.begin(); await tools.forever()") as process:
        assert process.stderr is not None
        read_until(process.stderr.fileno(), "begun")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["error"]["code"] == "cancelled"


def test_a_reader_that_goes_away_is_no_error() -> None:
    with started("run", "-e", "'x'.repeat(4e6)") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_a_full_disk_is_reported() -> None:
    done = gloveport("run", "-e", "1", prefix=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert (done.code, done.err.count("\n")) == (2, 2)
    assert "the output can't be written: No space left on device" in done.err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_are_no_error(closed: str) -> None:
    done = gloveport("run", "-e", "console.log(1); 2", prefix=("sh", "-c", f'exec "$@" {closed}', "sh"))
    assert done.code == 0
    assert done.out == ("" if ">&-" in closed.split() else "2\n")
