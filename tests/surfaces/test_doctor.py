"""`gloveport doctor` and `engines`: real self-tests, and proof that a self-test can fail."""

import io
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gloveport.sandbox.jail.strength import JailReport, Layer
from gloveport.sandbox.self_test import ATTEMPTS, Canaries, EscapeAttempt, SelfTestResult, _judge, _lines, self_test_launch
from gloveport.surfaces.cli.start import doctor
from gloveport.surfaces.terminal import Stream
from tests.surfaces.command import gloveport

NO_NAMESPACES = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh")


@pytest.mark.integration
def test_doctor_proves_the_jail_and_says_so_last() -> None:
    done = gloveport("doctor")
    assert (done.code, done.err) == (0, "")
    last = done.out.splitlines()[-1]
    assert last.startswith("✓ The sandbox is sealed (strength ")
    assert last.endswith("Next: gloveport run -e '1 + 1'")
    for what in ATTEMPTS.values():
        assert f"✓ {what}" in done.out


@pytest.mark.integration
def test_doctor_json_names_every_check_layer_and_attempt() -> None:
    document = gloveport("doctor", "--json").document
    assert document["ok"] is True
    assert [check["name"] for check in document["checks"]] == [
        "python",
        "platform",
        "engine",
        "memory",
        "disk",
        "strength",
        "python engine",
    ]
    assert {"landlock", "seccomp", "namespaces", "root"} <= {layer["name"] for layer in document["layers"]}
    assert [attempt["name"] for attempt in document["proof"]] == list(ATTEMPTS)
    assert all(attempt["held"] and attempt["control"] and not attempt["escaped"] for attempt in document["proof"])


@pytest.mark.integration
def test_without_namespaces_the_jail_is_weaker_and_still_holds() -> None:
    done = gloveport("doctor", "--json", prefix=NO_NAMESPACES)
    assert (done.code, done.document["strength"]) == (0, "kernel")
    assert all(attempt["held"] for attempt in done.document["proof"])


@pytest.mark.integration
def test_a_strength_below_the_minimum_fails_with_the_fix() -> None:
    done = gloveport("doctor", "--minimum", "full", prefix=NO_NAMESPACES)
    assert done.code == 1
    assert "✗ strength" in done.out
    assert "fix: " in done.out
    assert done.out.splitlines()[-1].startswith("✗ The sandbox does not meet the requirements (strength).")
    document = gloveport("doctor", "--minimum", "full", "--json", prefix=NO_NAMESPACES).document
    assert (document["ok"], document["error"]["code"]) == (False, "check-failed")
    assert document["error"]["message"] == "The sandbox does not meet the requirements (strength)."


@pytest.mark.integration
def test_outside_the_jail_every_attempt_gets_through(tmp_path: Path) -> None:
    # The control experiment: the same script, canaries and engine, without the jail.
    with Canaries() as canaries:
        controls = canaries.controls()
        launch = self_test_launch(canaries.plan())
        (place, content), *_ = launch.files.items()
        script = tmp_path / "attempts.js"
        script.write_bytes(content)
        argv = [str(script) if word == place else word for word in launch.argv[1:]]
        done = subprocess.run(
            [launch.executable, *argv], capture_output=True, env=dict(os.environ), timeout=60, check=False
        )
        tripped = canaries.tripped()
    said = dict(_lines(done.stdout))
    attempts = [_judge(name, said.get(name), name in tripped, controls) for name in ATTEMPTS]
    assert [attempt.name for attempt in attempts if attempt.held] == []
    # A successful exec replaces the process that would report it; all other attempts are seen to escape.
    assert [attempt.name for attempt in attempts if not attempt.escaped] == ["execve"]
    assert b"deno " in done.stdout


def test_no_detail_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    detail = "full: namespaces, a root filesystem of its own, Landlock and seccomp (the minimum is kernel)"
    for columns, terminal in ((45, True), (100, False)):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = io.StringIO()
        doctor._row(
            Stream(out, terminal, coloured=False), "✓", "strength", detail, "do this, then that, and `gloveport doctor`"
        )
        lines = out.getvalue().splitlines()
        assert " ".join(out.getvalue().split()).startswith(f"✓ strength {detail} fix: do this")
        assert all(len(line) <= columns for line in lines) or not terminal, lines


def _proof(**changes: Any) -> SelfTestResult:
    layers = tuple(Layer(name, True, "in force") for name in ("namespaces", "root", "landlock", "seccomp"))
    attempts = [EscapeAttempt(name, what, False, "refused") for name, what in ATTEMPTS.items()]
    attempts[0] = EscapeAttempt("tcp", ATTEMPTS["tcp"], **{"escaped": False, "detail": "refused", **changes})
    return SelfTestResult(JailReport("full", layers), tuple(attempts))


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"escaped": True, "detail": "connected"}, "✗ The sandbox is NOT sealed (tcp)."),
        ({"control": False}, "✗ No escape was found, but not all could be tried (tcp)."),
        ({"reported": False}, "✗ No escape was found, but not all could be tried (tcp)."),
    ],
)
def test_an_escape_and_an_attempt_that_proves_nothing_are_failures(
    changes: dict[str, Any], verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run_self_test() -> SelfTestResult:
        return _proof(**changes)

    monkeypatch.setattr(doctor, "run_self_test", run_self_test)
    assert doctor.doctor_command("kernel", as_json=False, color="never") == 1
    shown = capsys.readouterr().out
    assert "✗ connect to a TCP port of the host" in shown
    assert shown.splitlines()[-1].startswith(verdict)


@pytest.mark.parametrize(
    ("strength", "scoped", "engine"),
    [("full", False, "cpython "), ("kernel", True, "cpython "), ("kernel", False, "monty ")],
)
def test_doctor_says_which_engine_runs_python_here(strength: Any, scoped: bool, engine: str) -> None:
    check = doctor._python_engine(JailReport(strength, (Layer("signal scope", scoped, "…"),)))
    assert check.ok
    assert check.detail.startswith(engine)


def test_a_canary_that_tripped_counts_whatever_the_guest_says() -> None:
    said = {"name": "dns", "escaped": False, "detail": "no answer"}
    assert _judge("dns", said, True, {}).escaped


@pytest.mark.integration
def test_engines_lists_deno_with_what_it_can_do() -> None:
    done = gloveport("engines", "--json")
    engine, quickjs, python, monty = done.document["engines"]
    assert (quickjs["name"], quickjs["languages"], quickjs["available"]) == ("quickjs", ["typescript", "javascript"], True)
    assert (python["name"], python["languages"], python["available"]) == ("cpython", ["python"], True)
    assert (monty["name"], monty["languages"], monty["available"]) == ("monty", ["python"], True)
    assert [listed["chosen"] for listed in (engine, quickjs, python, monty)] == [
        ["typescript", "javascript"],
        [],
        ["python"],
        [],
    ]
    assert (done.code, done.document["ok"], engine["name"], engine["available"]) == (0, True, "deno", True)
    assert engine["languages"] == ["typescript", "javascript"]
    abilities = {ability["name"]: ability["state"] for ability in engine["abilities"]}
    assert (abilities["typescript"], abilities["eval"], abilities["wasm"], abilities["network"]) == (
        "yes",
        "off",
        "off",
        "off",
    )


@pytest.mark.integration
def test_what_engines_says_of_eval_and_wasm_is_true() -> None:
    tries = "[() => eval('1'), () => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))]"
    program = f"{tries}.map((run) => {{ try {{ run(); return true }} catch {{ return false }} }})"
    assert gloveport("run", "-e", program, "--fields", "value").document["value"] == [False, False]
    allowed = gloveport("run", "--allow-eval", "--allow-wasm", "-e", program, "--fields", "value")
    assert allowed.document["value"] == [True, True]
