"""The hostile programs in Python, each run in four ways and judged by canaries of the host.

Threats S2, S3, S7, S8, S9, S10, S16 and S22.

control    outside of any sandbox, or, for attacks on the wire, before a host that believes it: the canary must trip
sealed     the real product, on each engine of the language; what `prepare` refuses runs again as if it had seen nothing
fallen     the bare interpreter inside the jail, without our prelude: the jail alone must hold
elsewhere  sealed and fallen again: without namespaces, and as an ordinary user
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.escapes import python_ways
from tests.escapes.brought import approved
from tests.escapes.corpus import Escape, runnable
from tests.escapes.elsewhere import SURROUNDINGS, Verdicts, fall, run_all, run_controls, try_elsewhere
from tests.escapes.python_ways import ENGINES

ESCAPES = runnable(python=True)

each = pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)


@pytest.fixture(scope="module")
def said() -> Iterator[list[str]]:
    with python_ways.eavesdropping() as heard:
        yield heard


@pytest.fixture(scope="module", autouse=True)
def brought() -> Iterator[None]:
    with approved():
        yield


@pytest.fixture(scope="module")
async def controls(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    folder = str(tmp_path_factory.mktemp("python"))
    ways = {True: python_ways.believed, False: python_ways.outside}
    return await run_controls(lambda escape: ways[escape.naive](escape, folder), python=True)


@pytest.fixture(scope="module", params=ENGINES)
async def sealed(said: list[str], request: pytest.FixtureRequest) -> AsyncIterator[Verdicts]:
    async with python_ways.open_port(minimum="full") as port:
        yield await run_all(lambda escape: python_ways.sealed(escape, port, said, request.param), python=True)


@pytest.fixture(scope="module", params=[False, True], ids=["", "with a workspace"])
async def fallen(request: pytest.FixtureRequest) -> Verdicts:
    return (await fall(python_ways.plain_launch(workspace=request.param), python=True, minimum="full"))[1]


@pytest.mark.integration
@each
def test_a_hostile_program_trips_a_canary_without_the_sandbox(controls: Verdicts, escape: Escape) -> None:
    verdict = controls[escape.name]
    assert verdict.tripped, verdict.text[-3000:]


@pytest.mark.integration
@each
def test_a_hostile_program_trips_no_canary_when_sealed(sealed: Verdicts, escape: Escape) -> None:
    verdict = sealed[escape.name]
    assert not verdict.tripped, verdict.text[-3000:]


@pytest.mark.integration
@each
def test_a_hostile_program_in_a_bare_interpreter_in_the_jail_trips_no_canary(fallen: Verdicts, escape: Escape) -> None:
    verdict = fallen[escape.name]
    assert not verdict.tripped, verdict.text[-3000:]


@pytest.mark.integration
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
async def test_no_hostile_program_trips_a_canary_elsewhere(surroundings: str) -> None:
    told = await try_elsewhere(surroundings, python=True)
    assert told["tripped"] == {}
    assert (told["strength"], told["tried"]) == (SURROUNDINGS[surroundings][2], len(ESCAPES) * (1 + len(ENGINES)))


@each
def test_a_hostile_program_says_what_it_tries_and_where_the_idea_comes_from(escape: Escape) -> None:
    head = escape.code.split("\n\n")[0]
    assert re.match(r"# Tries: .{20,}", head), escape.path
    assert re.search(r"^# Origin: .{5,}", head, re.MULTILINE), escape.path


def test_no_two_programs_are_the_same() -> None:
    texts = [re.sub(r"#.*|\s+", "", escape.code) for escape in ESCAPES]
    assert len(set(texts)) == len(ESCAPES) >= 100
