"""Options that are not valid are refused before anything starts (threat S19)."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport import Gloveport, Limits, OptionError


@pytest.mark.parametrize(
    "options",
    [
        {"limits": {"wall_seconds": "90s"}},
        {"limits": {"wall_seconds": math.nan}},
        {"limits": {"wall_seconds": math.inf}},
        {"limits": {"wall_seconds": -1}},
        {"limits": {"wall_seconds": 0}},
        {"limits": {"cpu_seconds": True}},
        {"limits": {"memory_mb": 12.5}},
        {"limits": {"memory_mb": 1}},
        {"limits": {"max_calls": -1}},
        {"limits": {"max_call": 5}},
        {"limits": {"timeout": 5}},
        {"limits": 5},
        {"engines": "deno"},
        {"engines": ["node"]},
        {"engines": [["deno"]]},
        {"allow_eval": "yes"},
        {"allow_wasm": 1},
        {"log_code": None},
        {"minimum": "strong"},
        {"spare": -1},
        {"spare": 1.5},
        {"tools": [5]},
        {"tools": 5},
    ],
    ids=str,
)
def test_a_senseless_option_is_an_error_at_construction(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as caught:
        Gloveport(**options)
    assert caught.value.code == "bad-option"
    assert next(iter(options)) in str(caught.value) or "max_call" in str(caught.value) or caught.value.message


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="timeout"):
        Gloveport(timeout=5)  # pyright: ignore[reportCallIssue]


async def test_a_senseless_run_option_is_an_error_before_the_run(port: Gloveport) -> None:
    for options in (
        {"language": "ruby"},
        {"engine": "v8"},
        {"engine": ["deno"]},
        {"limits": {"wall_seconds": "1"}},
        {"env": {"A": 1}},
    ):
        with pytest.raises(OptionError):
            await port.run("1", **options)
    with pytest.raises(OptionError):
        await port.run(b"1")  # pyright: ignore[reportArgumentType]


# Every option, with valid and invalid values; a limit is named with a dot.
OPTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "allow_eval": ([True, False], [None, 1, "yes"]),
    "allow_wasm": ([True, False], [0, "no"]),
    "log_code": ([True, False], [None, "all"]),
    "minimum": (["full", "kernel"], ["strong", "", 2]),
    "spare": ([0, 3], [-1, 1.5, "2"]),
    "engines": ([[], ["deno"], ("monty",)], [["node"], "deno", 0, [1]]),
    "tools": ([[], ()], [5, [5], ["name"]]),
    "limits.wall_seconds": ([0.5, 60], [0, -1, math.nan, math.inf, "60", True]),
    "limits.cpu_seconds": ([0.5, 30], [0, -0.5, math.inf, None]),
    "limits.memory_mb": ([64, 1024], [0, 1, 12.5, "256"]),
    "limits.max_calls": ([0, 10], [-1, 2.5, "many"]),
    "limits.max_concurrent_calls": ([1, 64], [0, -1, 1.5]),
    "limits.max_log_bytes": ([0, 1000], [-1, "1 KiB"]),
    "limits.max_result_bytes": ([1000, 2**20], [-1, 0.5]),
    "limits.max_frame_bytes": ([2**20, 2**24], [-1, "16 MiB"]),
    "limits.max_code_bytes": ([1000, 2**20], [-1, None]),
    "limits.max_threads": ([], [1]),  # there is no such limit
}


def _options(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        outer, _, inner = name.partition(".")
        if inner:
            made.setdefault(outer, {})[inner] = value
        else:
            made[outer] = value
    return made


@given(st.lists(st.sampled_from(sorted(OPTIONS)), min_size=2, max_size=2, unique=True), st.data())
def test_any_two_options_are_accepted_when_both_make_sense_and_refused_when_one_does_not(
    names: list[str], data: st.DataObject
) -> None:
    chosen: list[tuple[str, Any]] = []
    senseless = False
    for name in names:
        good, bad = OPTIONS[name]
        place = data.draw(st.integers(0, len(good) + len(bad) - 1))
        chosen.append((name, (good + bad)[place]))
        senseless |= place >= len(good)
    if senseless:
        with pytest.raises(OptionError):
            Gloveport(**_options(chosen))
    else:
        Gloveport(**_options(chosen))


def test_the_defaults_are_those_of_the_design() -> None:
    assert Limits() == Limits(60, 30, 256, 1000, 128, 256 * 1024, 8 * 2**20, 16 * 2**20, 2**20)
