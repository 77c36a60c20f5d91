"""Everything that reads what others wrote keeps its promise for inputs that nobody would write (S5, S6, S13, N8, N10).

Each target of `fuzz/` replays its corpus, finds of the past included, and then goes on for a few seconds from a fixed seed;
`make fuzz` goes on for longer, from another seed each time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fuzz import campaign
from fuzz.mutation import mutate_bytes, mutate_json, mutate_message, mutate_tokens
from fuzz.target import CORPUS, Target
from fuzz.targets import TARGETS

SEED = int(os.environ.get("FUZZ_SEED", "20261116"))


def cases() -> Iterator[object]:
    """The targets but those of test_stall.py; those that run a guest start a sandbox, and one forks."""
    for target in TARGETS:
        if target.name.startswith("stall-"):
            continue
        marks = [pytest.mark.integration] if target.name.startswith(("guest-", "typescript")) else []
        yield pytest.param(target, id=target.name, marks=marks)


@pytest.fixture(params=cases())
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    yield request.param
    request.param.close()


def test_a_target_keeps_its_promise_for_its_corpus(target: Target) -> None:
    report = campaign.run(target, seconds=0, seed=SEED)
    assert report.find is None, str(report)
    assert report.inputs == len(target.corpus())


@pytest.mark.long
def test_a_target_keeps_its_promise(target: Target) -> None:
    report = campaign.run(target, seconds=target.test_seconds, seed=SEED)
    print(report)  # shown when this fails: the seed that leads there again
    assert report.find is None, str(report)
    assert report.inputs >= len(target.corpus())


def test_every_folder_of_the_corpus_has_its_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= {target.name for target in TARGETS}


# What a campaign must see.


def _judging(judge: object) -> Target:
    return Target("made", judge, mutate_bytes((b"magic",)), (b"a seed of no meaning",), ())  # type: ignore[arg-type]


def test_an_error_that_was_not_declared_is_a_find_and_the_same_seed_finds_it_again() -> None:
    def judge(data: bytes) -> None:
        if b"magic" in data:
            raise KeyError("not declared")

    one, other = (campaign.run(_judging(judge), seconds=20, seed=7).find for _ in range(2))
    assert one is not None
    assert other is not None
    assert b"magic" in one.data
    assert (one.data, "not declared" in one.problem) == (other.data, True)


def test_an_input_that_hangs_is_a_find() -> None:
    def judge(data: bytes) -> None:
        while True:
            try:
                sum(data)
            except Exception:  # noqa: BLE001 - even one that swallows all errors is stopped
                continue

    find = campaign.run(replace(_judging(judge), max_seconds=0.2), seconds=20, seed=1).find
    assert find is not None
    assert "CPU time" in find.problem


@pytest.mark.long
def test_an_input_that_takes_much_memory_is_a_find() -> None:
    # More than the process has ever held: what it held before can be filled again without a peak.
    find = campaign.run(_judging(lambda _: bytes(bytearray(b"x" * campaign._peak_kb() * 1024))), seconds=20, seed=1).find
    assert find is not None
    assert "grow" in find.problem


@pytest.mark.long
def test_a_campaign_finds_its_way_to_lines_that_chance_alone_would_not_reach() -> None:
    frames = next(target for target in TARGETS if target.name == "run_attempt")
    report = campaign.run(replace(frames, seeds=(b"[]",), name="made"), seconds=3, seed=3)
    assert report.ways > 100
    assert report.kept


@pytest.mark.parametrize("mutate", [mutate_bytes(), mutate_tokens([b"x"]), mutate_json(["x"]), mutate_message])
@pytest.mark.parametrize("data", [b"", b"[]", b"1", b'{"a":[1,{"b":null}]}', b"\xff\x00", b"\x0a\x03abc"])
def test_any_bytes_can_be_changed(mutate: object, data: bytes) -> None:
    chance = random.Random(1)
    made = {mutate(data, b'[{"c":2}]', chance) for _ in range(200)}  # type: ignore[operator]
    assert len(made) > 3
