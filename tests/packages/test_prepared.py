"""Processes import the modules of recent programs before the next program comes. What a run sees stays a function of its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from gloveport import Gloveport, Outcome
from gloveport.sandbox import pool, worker
from gloveport.sandbox.pool import PreparedWorkers
from gloveport.sandbox.start_event import Preparation, RunModules, RunSetup, preparation_of, start_event, without_script
from gloveport.types import Limits, Program
from tests.packages.approved import Approved
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration

CHANCE_JS = (
    "exports.at = Date.now(); exports.first = Math.random(); exports.count = 0; exports.next = () => ++exports.count"
)
CHANCE_PY = "import random, time\nat = time.time()\nfirst = random.random()\ncount = 0\n"
SCRIPTS = {
    "chance": CHANCE_JS,
    "loud": "console.log('imported'); exports.x = 1",
    "calling": "exports.x = tools.local.double({number: 4})",
    "waiting": "setTimeout(() => {}, 5); exports.x = 1",
    "failing": "Promise.reject(new Error('late')); exports.x = 1",
    "endless": "if (globalThis.state === undefined) for (;;); exports.x = 1",
}
MODULES = {
    "chance": CHANCE_PY,
    "loud": "print('imported')\nx = 1\n",
    "calling": "x = tools.local.double(number=4)\n",
    "failing": "raise ImportError('not here')\n",
}
USES = {
    "typescript": "import { at, first, next } from 'chance'; [at, first, Math.random(), next(), Date.now() - at, performance.now()]",
    "python": "import chance, random, time\n"
    "chance.count += 1\n[chance.at, chance.first, random.random(), chance.count, time.time() - chance.at, time.monotonic()]",
}


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(tmp_path_factory.mktemp("home") / name))
        approved = Approved()
        for name, text in SCRIPTS.items():
            approved.add(f"{name}@1.0.0", {"index.js": text})
        for name, text in MODULES.items():
            approved.add(f"pypi:{name}@1.0", {f"{name}.py": text})
        yield


@pytest.fixture(scope="module")
async def port(packages: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("store") / "store.sqlite"
    async with Gloveport(tools=[double], store=path, spare=1) as opened:
        yield opened


async def run_prepared(port: Gloveport, language: str, code: str, **options: Any) -> Outcome:
    """Run a program, again if its process was not prepared: the first run has the next one's prepared."""
    for _ in range(3):
        outcome = await port.run(code, language=language, **options)  # type: ignore[arg-type]
        if await is_prepared(port, outcome):
            return outcome
        await settled(port)
    raise AssertionError("no process was prepared")


async def is_prepared(port: Gloveport, outcome: Outcome) -> bool:
    start = (await port.recording(outcome.run)).events[0]
    return preparation_of(start) is not None


async def settled(port: Gloveport) -> None:
    """Wait until the processes are prepared that the last run has asked for."""
    async with asyncio.timeout(60):
        await port._loop.run(lambda: _settled(port))


async def _settled(port: Gloveport) -> None:
    for each in list(port._pools.open.values()):
        each.refill()
        while each._prepared._tasks:
            await asyncio.wait(set(each._prepared._tasks))


@pytest.mark.parametrize("language", USES)
async def test_a_prepared_run_differs_from_the_next_and_replays_exactly(language: str, port: Gloveport) -> None:
    runs = [await run_prepared(port, language, USES[language]) for _ in range(2)]
    values = [outcome.value for outcome in runs]
    assert [outcome.error for outcome in runs] == [None, None]
    for at, first, later, count, passed, monotonic in values:
        assert at > 1_700_000_000
        assert first != later
        assert count == 1
        assert passed >= 0
        assert 0 <= monotonic < 60_000
    assert values[0][1] != values[1][1]
    for outcome in runs:
        assert await port.replay(outcome.run) is None


@pytest.mark.parametrize("language", USES)
async def test_a_changed_record_of_a_prepared_run_is_noticed(language: str, port: Gloveport) -> None:
    from dataclasses import replace

    outcome = await run_prepared(port, language, USES[language])
    recording = await port.recording(outcome.run)
    found = preparation_of(recording.events[0])
    assert found is not None
    moved = recording.events[0].replace(b'"prepared":%d' % found.now, b'"prepared":%d' % (found.now - 5_000_000))
    steps = (("host", moved), *recording.steps[1:])
    assert await port.replay(replace(recording, steps=steps)) is not None


async def test_a_prepared_run_follows_its_plan_and_a_second_one_is_the_same(port: Gloveport) -> None:
    planned = await port.run(USES["typescript"], mode="plan")
    await settled(port)
    assert planned.plan is not None
    seed = orjson.loads((await port.recording(planned.run)).events[0])[2]["seed"]
    applied = await port.apply(planned.plan)
    assert applied.error is None
    start = (await port.recording(applied.run)).events[0]
    assert orjson.loads(start)[2]["seed"] == seed
    assert preparation_of(start) is None


@pytest.mark.parametrize(
    ("language", "name"),
    [("typescript", each) for each in ("loud", "calling", "waiting", "failing")] + [("python", each) for each in MODULES],
)
async def test_a_module_that_does_more_than_import_is_imported_by_the_run(
    language: str, name: str, port: Gloveport
) -> None:
    if name == "chance":
        return
    code = f"import {{ x }} from '{name}'; await x" if language == "typescript" else f"import {name}\nawait {name}.x"
    if name in ("loud", "waiting"):
        code = code.replace("await ", "")
    for _ in range(2):
        outcome = await port.run(code, language=language)  # type: ignore[arg-type]
        await settled(port)
        assert not await is_prepared(port, outcome)
        if name == "loud":
            assert [line.text for line in outcome.logs] == ["imported"]
        if name == "calling":
            assert (outcome.value, len(outcome.calls)) == (8, 1)
        if name == "failing" and language == "python":
            assert outcome.error is not None
            assert "not here" in outcome.error.message


@pytest.mark.parametrize("language", USES)
async def test_a_run_with_an_environment_or_a_session_imports_by_itself(language: str, port: Gloveport) -> None:
    await run_prepared(port, language, USES[language])
    for options in ({"env": {"A": "b"}}, {"session": "s"}):
        outcome = await port.run(USES[language], language=language, **options)  # type: ignore[arg-type]
        assert outcome.error is None
        assert not await is_prepared(port, outcome)


async def test_a_package_that_never_ends_holds_up_nothing(port: Gloveport, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would loop without a run, and works in one: a package may look for the difference, and gains nothing by it."""
    monkeypatch.setattr(worker, "MAX_PREPARATION_SECONDS", 0.2)
    code = "import { x } from 'endless'; x"
    for _ in range(2):
        outcome = await port.run(code)
        assert outcome.value == 1
        assert not await is_prepared(port, outcome)
        await settled(port)


class FakeWorker:
    """A worker that prepares itself at once."""

    prepared: Preparation | None = None

    async def prepare(self, preparation: Preparation) -> bool:
        self.prepared = preparation
        return preparation.modules.imports != ("unfit",)

    def alive(self) -> bool:
        return True


async def test_few_sets_of_modules_are_kept_and_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PREPARED_IDLE_SECONDS", 0.05)
    started: list[FakeWorker] = []
    retired: list[Any] = []

    async def start() -> Any:
        started.append(FakeWorker())
        return started[-1]

    async def refilled(workers: PreparedWorkers[Any]) -> None:
        workers.refill()
        while workers._tasks:
            await asyncio.wait(set(workers._tasks))

    workers: PreparedWorkers[Any] = PreparedWorkers(start, retired.append, 3)
    names = [f"m{number}" for number in range(pool.MAX_SETS + 3)]
    for name in names:
        assert workers.take(RunModules(imports=(name,))) is None
        await refilled(workers)
    assert len(workers._sets) == pool.MAX_SETS
    assert len(retired) == 3 * pool.MAX_PREPARED_WORKERS
    latest = RunModules(imports=(names[-1],))
    taken = [workers.take(latest) for _ in range(pool.MAX_PREPARED_WORKERS + 1)]
    assert [each is None for each in taken] == [False] * pool.MAX_PREPARED_WORKERS + [True]
    assert all(each.prepared.modules == latest for each in taken[:-1])
    assert len({each.prepared.seed for each in taken[:-1]}) == pool.MAX_PREPARED_WORKERS
    unfit = RunModules(imports=("unfit",))
    for _ in range(2):
        assert workers.take(unfit) is None
        before = len(started)
        await refilled(workers)
    assert len([each for each in started[before:] if each.prepared and each.prepared.modules == unfit]) == 0
    await eventually(lambda: not workers._sets)
    assert len(retired) == len(started) - pool.MAX_PREPARED_WORKERS
    none: PreparedWorkers[Any] = PreparedWorkers(start, retired.append, 0)
    none.take(latest)
    before = len(started)
    await refilled(none)
    assert len(started) == before
    await none.close()


SCRIPT = 'const quoted = "\\"script\\":null";'


@pytest.mark.parametrize("modules", [RunModules(("path",), SCRIPT), RunModules((), "x"), RunModules(imports=("a", "b"))])
def test_the_first_event_of_a_run_says_how_its_process_was_prepared(modules: RunModules) -> None:
    given = {"modules": {"script": SCRIPT, "prepared": 1}}
    prepared = Preparation(modules, 7, bytes(range(32)))
    setup = RunSetup(modules=modules, prepared=prepared, seed=prepared.seed, input=given, has_input=True)
    event = start_event(Program("1", "javascript", "1", "javascript", "body", ()), setup, Limits(), 1000)
    assert preparation_of(event) == prepared
    sent, whole = orjson.loads(without_script(event)), orjson.loads(event)
    if modules.script is not None:
        assert sent[2]["modules"].pop("script") is None
        assert whole[2]["modules"].pop("script") == modules.script
    assert sent == whole
    plain = start_event(
        Program("1", "javascript", "1", "javascript", "body", ()), RunSetup(modules=modules), Limits(), 1000
    )
    assert preparation_of(plain) is None
    assert (
        preparation_of(
            start_event(
                Program("1", "python", "1", "python", "body", ()), RunSetup(input=given, has_input=True), Limits(), 1
            )
        )
        is None
    )
