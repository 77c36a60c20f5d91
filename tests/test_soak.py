"""`make soak` is true to its word: it runs every kind of run on every engine, and sees what grows (R5)."""

from __future__ import annotations

import asyncio

import pytest
from benchmarks.soak import KINDS, SAMPLES, Sample, judge, soak

from tests.engines import ENGINES

STILL = {
    "seconds": 1.0,
    "own_mb": 70.0,
    "servers_mb": 45.0,
    "descriptors": 35,
    "tasks": 1,
    "threads": 1,
    "processes": 10,
    "files": 0,
}


def _samples(**slopes: float) -> list[Sample]:
    """Samples in which these things grow by so much a sample."""
    return [
        Sample(**{"runs": 500 * part, **STILL} | {name: STILL[name] + slope * part for name, slope in slopes.items()})  # type: ignore[arg-type]
        for part in range(1, SAMPLES + 1)
    ]


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("own_mb", 1.0),
        ("servers_mb", 0.5),
        ("descriptors", 1),
        ("tasks", 1),
        ("threads", 0.2),
        ("processes", 1),
        ("files", 1),
    ],
)
def test_a_thing_that_grows_is_seen(name: str, slope: float) -> None:
    (grown,) = judge(_samples(**{name: slope}))
    assert grown.startswith(f"{name} grew ")


def test_what_only_comes_and_goes_is_no_growth() -> None:
    samples = _samples()
    samples[-2] = samples[-2]._replace(descriptors=41, processes=12, own_mb=90.0)
    samples[6] = samples[6]._replace(descriptors=32, processes=9)
    assert judge(samples) == []


@pytest.mark.integration
def test_every_kind_of_run_on_every_engine_ends_as_it_should(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(soak(100))  # too few to judge what grows; a run that ends otherwise than it should stops it
    told = capsys.readouterr().out
    assert "| 100 |" in told
    assert all(f"{engine.name} " in told for engine in ENGINES)
    assert all(any(end in told for end in kind.ends) for kind in KINDS.values())
