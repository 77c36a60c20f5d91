"""Layers really missing: the strength, `doctor` and the refusal are right, for every engine and user (S18).

A seccomp filter refuses the system calls of a layer to the whole command: `gloveport` and all that it starts.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engines import ENGINES, Engine, Per, said
from tests.sandbox.jail.host import CONTAINED, CONTAINED_NOBODY
from tests.sandbox.jail.stage import play

pytestmark = pytest.mark.integration

USERS = [pytest.param("reachable", id="root"), pytest.param("nobody", id="unprivileged")]
CONTAINERS = [pytest.param(CONTAINED, id="root"), pytest.param(CONTAINED_NOBODY, id="unprivileged")]
PROGRAM = Per("[1, 2].map((n) => n * 21)[1]", "[n * 21 for n in (1, 2)][1]")
NEEDED = {
    "landlock": ("landlock: landlock_create_ruleset: Function not implemented", "Linux 5.13"),
    "seccomp": ("seccomp: seccomp: Operation not permitted", "CONFIG_SECCOMP_FILTER"),
}
UNAVAILABLE = 8


class Seen:
    """What a user sees in one environment: the output of `doctor`, and the result of a run on each engine."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.runs: dict[str, tuple[int, str, str]] = {name: tuple(ended) for name, ended in told.items()}
        self.code, out, err = self.runs.pop("doctor")
        assert err == ""
        self.doctor = json.loads(out)
        self.strength = self.doctor["strength"]
        self.missing = {layer["name"] for layer in self.doctor["layers"] if not layer["in_force"]}
        self.proof = {attempt["name"]: attempt for attempt in self.doctor["proof"]}

    def check(self, name: str) -> dict[str, Any]:
        (found,) = (check for check in self.doctor["checks"] if check["name"] == name)
        return found


_seen: dict[tuple[str, tuple[str, ...]], Seen] = {}


async def see(user: str, *without: str) -> Seen:
    """Return what a user sees there; computed once."""
    if (user, without) not in _seen:
        asked = {engine.name: ["run", *_named(engine), "-e", said(PROGRAM, engine)] for engine in ENGINES}
        commands = {"doctor": ["doctor", "--json"], **asked, "any": ["run", "--language", "python", "-e", "40 + 2"]}
        _seen[user, without] = Seen(await play("commands", {"commands": commands}, user=user, without=[*without]))
    return _seen[user, without]


def _named(engine: Engine) -> list[str]:
    return ["--language", engine.language, "--engine", engine.name]


async def command(*args: str, user: str, without: str) -> tuple[int, str, str]:
    """Return the output of one command there."""
    told = await play("commands", {"commands": {"one": args}}, user=user, without=[without])
    return tuple(told["one"])


# ── required layers ──


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("layer", NEEDED)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_without_a_needed_layer_no_engine_runs_and_the_refusal_names_the_layer_and_its_fix(
    engine: Engine, layer: str, user: str
) -> None:
    code, out, err = (await see(user, layer)).runs[engine.name]
    reason, fix = NEEDED[layer]
    assert (code, out) == (UNAVAILABLE, "")
    assert err.startswith("✗ sandbox-unavailable: the sandbox here is of strength `none`, and `kernel` is required: ")
    assert reason in err
    assert f"hint: {layer}: " in err
    assert fix in err
    assert "gloveport doctor" in err


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("layer", NEEDED)
async def test_without_a_needed_layer_python_does_not_fall_back_to_a_weaker_jail(layer: str, user: str) -> None:
    code, out, _ = (await see(user, layer)).runs["any"]
    assert (code, out) == (UNAVAILABLE, "")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("layer", "gone"), [("landlock", {"landlock", "signal scope"}), ("seccomp", {"seccomp", "single exec"})]
)
async def test_without_a_needed_layer_doctor_fails_and_shows_what_would_bring_it(
    layer: str, gone: set[str], user: str
) -> None:
    seen = await see(user, layer)
    assert (seen.code, seen.doctor["ok"], seen.strength, seen.missing) == (1, False, "none", gone)
    strength = seen.check("strength")
    assert not strength["ok"]
    assert {found["fix"] for found in seen.doctor["layers"] if found["name"] in gone} == {strength["fix"]}
    assert NEEDED[layer][1] in strength["fix"]


async def test_without_a_needed_layer_no_engine_is_listed_as_usable() -> None:
    code, out, _ = await command("engines", "--json", user="nobody", without="landlock")
    listed = json.loads(out)["engines"]
    assert code == UNAVAILABLE
    assert [engine["available"] for engine in listed] == [False] * len(listed)
    assert all("of strength `none`" in engine["problem"] for engine in listed)


async def test_doctor_shows_the_engine_that_got_out_when_a_layer_is_missing() -> None:
    code, out, _ = await command("doctor", user="nobody", without="seccomp")
    assert code == 1
    assert "✗ start a program" in out
    assert "ESCAPED: started /engine/deno" in out
    assert "python engine" not in out, "which would run at no strength that is allowed"
    assert out.splitlines()[-1].startswith("✗ The sandbox is NOT sealed (strength, spawn, fork, execve).")


# ── namespaces, which are not required ──


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_without_namespaces_every_engine_runs(engine: Engine, user: str) -> None:
    assert (await see(user, "namespaces")).runs[engine.name] == (0, "42\n", "")


@pytest.mark.parametrize("user", USERS)
async def test_without_namespaces_doctor_says_kernel_and_that_it_holds(user: str) -> None:
    seen = await see(user, "namespaces")
    assert (seen.code, seen.doctor["ok"], seen.strength, seen.missing) == (0, True, "kernel", {"namespaces", "root"})
    assert len(seen.proof) == 14
    assert all(attempt["held"] for attempt in seen.proof.values())


@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_a_user_who_asks_for_full_strength_is_refused_without_namespaces(engine: Engine) -> None:
    asked = ("run", *_named(engine), "--minimum", "full", "-e", "1")
    code, out, err = await command(*asked, user="nobody", without="namespaces")
    assert (code, out) == (UNAVAILABLE, "")
    assert "of strength `kernel`, and `full` is required: namespaces: " in err
    assert "allow user namespaces" in err


# ── containers ──


@pytest.mark.parametrize("user", CONTAINERS)
async def test_in_a_container_doctor_says_kernel_and_that_it_holds(user: str) -> None:
    seen = await see(user)
    assert (seen.code, seen.doctor["ok"], seen.strength, seen.missing) == (0, True, "kernel", {"namespaces", "root"})
    assert all(attempt["held"] for attempt in seen.proof.values())


@pytest.mark.parametrize("user", CONTAINERS)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_in_a_container_every_engine_runs(engine: Engine, user: str) -> None:
    assert (await see(user)).runs[engine.name] == (0, "42\n", "")


async def test_the_container_of_these_tests_has_few_capabilities_and_can_make_no_namespace() -> None:
    told = await play("allowed", {}, user=CONTAINED, without=[])
    assert told == {"CapEff": "00000000a80425fb", "NoNewPrivs": "0", "Seccomp": "2", "unshare": "EPERM"}
    told = await play("allowed", {}, user=CONTAINED_NOBODY, without=[])
    assert (told["CapEff"], told["unshare"]) == ("0" * 16, "EPERM")


async def test_in_a_container_on_an_older_kernel_monty_runs_python_and_cpython_is_refused_by_name() -> None:
    seen = await see(CONTAINED_NOBODY, "signal scope")
    assert seen.runs["any"] == seen.runs["monty"] == seen.runs["deno"] == (0, "42\n", "")
    code, out, err = seen.runs["cpython"]
    assert (code, out) == (UNAVAILABLE, "")
    assert "this engine requires `full`, or `kernel` with the layer `signal scope`" in err
    assert "hint: signal scope: use Linux 6.12 or later" in err
    python = seen.check("python engine")
    assert (seen.code, python["ok"], python["detail"].split()[0]) == (0, True, "monty")
    assert seen.missing == {
        "namespaces",
        "root",
        "signal scope",
        "single exec",
    }  # the last one: the filter here has a listener


async def test_where_an_engine_could_be_started_once_more_doctor_says_so_and_holds_nothing_against_it() -> None:
    seen = await see("nobody", "listener")
    assert (seen.code, seen.strength, seen.missing) == (0, "full", {"single exec"})
    assert seen.proof["execve"]["held"]
    assert seen.proof["execve"]["detail"] == "except for the engine itself, again in the same jail"
