"""The corpus of hostile programs, each run in five ways and judged by canaries of the host.

Threats S1, S3, S4, S7, S8, S9, S10, S16 and S22.

control    outside of any sandbox, or under a naive prelude: the canary must trip, or the program tests nothing
sealed     the real product
loose      the real product with eval and WebAssembly allowed, and with `prepare` fooled into seeing nothing
fallen     the plain platform with every permission, inside the jail: the jail alone must hold
elsewhere  sealed and fallen again: without namespaces, and as an ordinary user
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from tests.escapes import ways
from tests.escapes.brought import approved
from tests.escapes.corpus import Escape, corpus, runnable
from tests.escapes.elsewhere import SURROUNDINGS, Verdicts, fall, run_all, run_controls, try_elsewhere

ESCAPES = runnable(python=False)
ROOT = Path(__file__).parents[1]
DOCUMENT, SPECIFICATION = ROOT / "docs" / "attacks.md", ROOT / "SPECIFICATION.md"

each = pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)


@pytest.fixture(scope="module")
def said() -> Iterator[list[str]]:
    with ways.eavesdropping() as heard:
        yield heard


@pytest.fixture(scope="module", autouse=True)
def brought() -> Iterator[None]:
    with approved():
        yield


@pytest.fixture(scope="module")
async def controls(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    cache = str(tmp_path_factory.mktemp("deno"))
    return await run_controls(lambda escape: (ways.naive if escape.naive else ways.outside)(escape, cache), python=False)


@pytest.fixture(scope="module", params=ways.ENGINES)
async def sealed(said: list[str], request: pytest.FixtureRequest) -> AsyncIterator[Verdicts]:
    async with ways.baited_port() as port:
        yield await run_all(lambda escape: ways.sealed(escape, port, said, request.param), python=False)


@pytest.fixture(scope="module", params=ways.ENGINES)
async def loose(said: list[str], request: pytest.FixtureRequest) -> AsyncIterator[Verdicts]:
    engine = request.param
    async with ways.baited_port(allow_eval=True, allow_wasm=engine == "deno") as port:  # quickjs has no WebAssembly
        yield await run_all(lambda escape: ways.sealed(escape, port, said, engine, prepared=False), python=False)


@pytest.fixture(scope="module", params=ways.PLAIN)
async def fallen(said: list[str], request: pytest.FixtureRequest) -> Verdicts:
    return (await fall(ways.PLAIN[request.param](), python=False, minimum="full"))[1]


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
def test_a_hostile_program_trips_no_canary_with_eval_and_wasm_and_past_prepare(loose: Verdicts, escape: Escape) -> None:
    verdict = loose[escape.name]
    assert not verdict.tripped, verdict.text[-3000:]


@pytest.mark.integration
@each
def test_a_hostile_program_in_a_fallen_engine_trips_no_canary(fallen: Verdicts, escape: Escape) -> None:
    verdict = fallen[escape.name]
    assert not verdict.tripped, verdict.text[-3000:]


@pytest.mark.integration
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
async def test_no_hostile_program_trips_a_canary_elsewhere(surroundings: str) -> None:
    told = await try_elsewhere(surroundings, python=False)
    assert told["tripped"] == {}
    wanted = len(ESCAPES) * (len(ways.PLAIN) + len(ways.ENGINES))
    assert (told["strength"], told["tried"]) == (SURROUNDINGS[surroundings][2], wanted)


@each
def test_a_hostile_program_says_what_it_tries_and_where_the_idea_comes_from(escape: Escape) -> None:
    head = escape.code.split("\n\n")[0]
    assert re.match(r"// Tries: .{20,}", head), escape.path
    assert re.search(r"^// Origin: .{5,}", head, re.MULTILINE), escape.path


def test_the_table_in_the_document_counts_the_programs() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (\d+) \|", DOCUMENT.read_text(), re.MULTILINE)
    counted: dict[str, list[int]] = {}
    for escape in corpus():
        counted.setdefault(escape.category, [0, 0])[escape.python] += 1
    assert {name: [int(scripts), int(python)] for name, scripts, python in rows} == counted
    assert f"{len(corpus())} programs" in DOCUMENT.read_text()
    promised = SPECIFICATION.read_text()
    assert f"| {len(corpus())} programs;" in promised
    assert "| {} tried in JavaScript, {} in Python;".format(*counted["persistence-between-runs"]) in promised


def test_the_engine_is_started_without_a_permission_and_makes_no_code_from_text() -> None:
    """Threat S4: what asynchronous code could reach is not there to be reached."""
    argv = DENO.launch(ProcessOptions("deno")).argv
    assert not [word for word in argv if "allow" in word and not word.startswith("--v8-flags")]
    assert {"--no-prompt", "--no-remote", "--no-npm", "--cached-only", "--deny-import"} < set(argv)
    (flags,) = [word for word in argv if word.startswith("--v8-flags=")]
    assert "--disallow-code-generation-from-strings" in flags
    assert "wasm" not in argv


def test_no_two_programs_are_the_same() -> None:
    texts = [re.sub(r"//.*|\s+", "", escape.code) for escape in ESCAPES]
    assert len(set(texts)) == len(ESCAPES) >= 60
