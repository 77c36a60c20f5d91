"""Options that make no sense are refused before anything starts (threat S19)."""

import itertools
import math
from typing import Any

import pytest

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
        {"limits": {"wall_seconds": "1"}},
        {"env": {"A": 1}},
    ):
        with pytest.raises(OptionError):
            await port.run("1", **options)
    with pytest.raises(OptionError):
        await port.run(b"1")  # pyright: ignore[reportArgumentType]


GOOD = {"allow_eval": [True, False], "allow_wasm": [True, False], "minimum": ["full", "kernel"], "spare": [0, 3]}


def test_every_pair_of_sensible_options_is_accepted() -> None:
    for first, second in itertools.combinations(GOOD, 2):
        for one, two in itertools.product(GOOD[first], GOOD[second]):
            Gloveport(**{first: one, second: two})


def test_the_defaults_are_those_of_the_design() -> None:
    assert Limits() == Limits(60, 30, 256, 1000, 64, 256 * 1024, 8 * 2**20, 16 * 2**20, 2**20)
