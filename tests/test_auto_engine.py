"""`engine="auto"`: the program decides which engine runs it, and comes to the same in either."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, Outcome, tool
from gloveport.errors import SandboxError
from gloveport.prepare import prepare
from gloveport.sandbox.engines import registry
from gloveport.sandbox.engines.quickjs.engine import ENGINE as QUICKJS
from gloveport.sandbox.engines.quickjs.subset import MISSING_GLOBALS, OTHER_GLOBALS, SUBSET
from gloveport.sandbox.tasks.program_task import PREPARE
from gloveport.sources.functions.modules import load_module
from tests.conftest import TOOLS
from tests.durable.test_resume import answer

pytestmark = pytest.mark.integration

LITTLE = "const n: number = await tools.add(1, 2); n + 1"
MUCH = "let n = 0; while (n < 5) n++; return n"
_COMMON_GLOBALS = """
AggregateError Array Boolean Date Error EvalError Infinity JSON Map Math NaN Number Object Promise RangeError
ReferenceError Set String SyntaxError ToolError TypeError URIError clearTimeout codemode console emit input
isFinite isNaN parseFloat parseInt queueMicrotask setTimeout tools undefined
"""
COMMON_GLOBALS = frozenset(_COMMON_GLOBALS.split())
"""Globals that a program uses in either engine with the same result."""
FEATURES = Path(__file__).with_name("language_features.txt").read_text().replace("\\\n", "\0").splitlines()
PROGRAMS = Path(__file__).with_name("programs")


@tool(writes=True)
async def pay(n: int) -> int:
    """Pay."""
    return n


async def fail() -> None:
    """Fail."""
    raise ValueError("it failed")


async def echo(value: Any) -> Any:
    """Return the value."""
    return value


@pytest.fixture(scope="module")
async def auto() -> AsyncIterator[Gloveport]:
    async with Gloveport(
        tools=[*[one for one in TOOLS if one.__name__ not in {"fail", "echo"}], fail, echo],
        engines=["auto"],
        allow_wasm=True,
        rules="open",
    ) as opened:
        yield opened


async def engine_of(port: Gloveport, code: str, **options: Any) -> str | None:
    outcome = await port.run(code, **options)
    assert outcome.ok, outcome.error
    return outcome.engine


async def test_the_program_decides_and_the_outcome_names_the_engine(auto: Gloveport) -> None:
    assert [await engine_of(auto, LITTLE) for _ in range(2)] == ["quickjs", "quickjs"]
    assert [await engine_of(auto, MUCH) for _ in range(2)] == ["deno", "deno"]
    assert await engine_of(auto, LITTLE, language="typescript", input=[1], env={"A": "b"}) == "quickjs"
    assert await engine_of(auto, "1 + 1", language="javascript") == "quickjs"
    assert await engine_of(auto, "enum A { B = 2 }\nA.B") == "deno"


async def test_a_run_that_names_its_engine_gets_it(auto: Gloveport) -> None:
    assert await engine_of(auto, LITTLE, engine="deno") == "deno"
    assert await engine_of(auto, MUCH, engine="quickjs", allow_wasm=False) == "quickjs"


async def test_a_run_can_ask_for_it_alone() -> None:
    async with Gloveport(tools=TOOLS) as port:
        assert await engine_of(port, LITTLE) == "deno"
        assert await engine_of(port, LITTLE, engine="auto") == "quickjs"


async def test_it_leaves_python_as_it_is(auto: Gloveport) -> None:
    assert await engine_of(auto, "1 + 1", language="python") == "cpython"
    assert await engine_of(auto, "1 + 1", language="python", engine="auto") == "cpython"


async def test_what_needs_files_or_webassembly_runs_in_deno(auto: Gloveport) -> None:
    assert await engine_of(auto, "1 + 1", session="files") == "deno"
    assert await engine_of(auto, "typeof WebAssembly.Module") == "deno"


async def test_a_program_that_does_not_start_or_fails_names_its_engine_too(auto: Gloveport) -> None:
    for code, engine in {
        "(": "deno",
        "tools.nothing()": "deno",
        "throw new Error('x')": "quickjs",
        "URL.x.y": "deno",
    }.items():
        outcome = await auto.run(code)
        assert (outcome.status, outcome.engine) == ("failed", engine)


async def test_without_quickjs_every_program_runs_in_deno(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise SandboxError("the engine `quickjs` is not installed")

    monkeypatch.setattr(QUICKJS, "version", missing)
    registry.lighter_engine.cache_clear()
    try:
        async with Gloveport(tools=TOOLS, engines=["auto"], spare=0) as port:
            assert await engine_of(port, LITTLE) == "deno"
            assert await engine_of(port, LITTLE, engine="auto") == "deno"
    finally:
        registry.lighter_engine.cache_clear()


async def test_the_text_is_read_once(auto: Gloveport, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, read = auto._programs.tasks, list[str]()
    run_for = tasks.run_for

    async def counted(agent: str, task: str, *rest: Any, **options: Any) -> list[bytes]:
        read.append(task)
        return await run_for(agent, task, *rest, **options)

    monkeypatch.setattr(tasks, "run_for", counted)
    for code in (f"{LITTLE} // once", f"{MUCH} // once", "( // once"):
        await auto.run(code)
    assert read == [PREPARE] * 3


async def test_the_choice_is_recorded_and_a_run_goes_on_and_is_repeated_in_its_engine(tmp_path: Path) -> None:
    store, code = tmp_path / "store.sqlite", "const paid = await tools.pay({n: 3}); paid + 1"
    settings = tmp_path / "gloveport.toml"
    settings.write_text("[approvals]\nhold_seconds = 0.1\n")
    async with Gloveport(tools=[pay], engines=["auto"], store=store, config=settings, rules="standard") as port:
        waiting = await port.run(code)
        assert (waiting.status, waiting.engine) == ("waiting", "quickjs")
    answer(store)
    async with Gloveport(tools=[pay], engines=["deno"], store=store, config=settings) as other:
        await other.resume(waiting.run)
        ended = await other.followed(waiting.run, "default") or await other.resume(waiting.run)
        assert (ended.status, ended.value, ended.engine) == ("completed", 4, "quickjs")
        assert (await other.recording(waiting.run)).engine == "quickjs"
        assert await other.replay(waiting.run) is None


async def test_every_global_is_known_to_the_rule(auto: Gloveport) -> None:
    outcome = await auto.run("Object.getOwnPropertyNames(globalThis)", engine="deno")
    unknown = set(outcome.value) - COMMON_GLOBALS - OTHER_GLOBALS - MISSING_GLOBALS
    assert unknown == {"local", "__interfaces", "__getToolInterface"}


def _seen(outcome: Outcome) -> tuple[Any, ...]:
    """Return what a program has come to, without the words of an error that the engine raises."""
    error = outcome.error and (outcome.error.code, outcome.error.type, outcome.error.line, outcome.error.tool)
    logs = [(line.level, line.text) for line in outcome.logs]
    calls = [(call.tool, repr(call.args), call.status) for call in outcome.calls]
    return outcome.status, repr(outcome.value), error, logs, repr(outcome.emitted), calls


async def test_features_of_the_language_come_to_the_same(auto: Gloveport) -> None:
    light = 0
    for feature in FEATURES:
        code = f"return {feature}".replace("\0", "\\\n")
        light += prepare(code, lighter=SUBSET).is_light
        assert _seen(await auto.run(code)) == _seen(await auto.run(code, engine="deno")), code
    assert len(FEATURES) == 159  # as SPECIFICATION.md says
    assert light > 0.6 * len(FEATURES)


@pytest.fixture(scope="module")
async def models() -> AsyncIterator[Gloveport]:
    tools = load_module(str(PROGRAMS.parents[1] / "examples" / "demo_tools.py"))
    limits = {"cpu_seconds": 1, "wall_seconds": 600}
    async with Gloveport(tools=tools, engines=["auto"], limits=limits) as opened:
        yield opened


@pytest.mark.parametrize("name", [path.name for kind in ("*.ts", "*.js") for path in sorted(PROGRAMS.glob(kind))])
async def test_programs_of_models_come_to_the_same(models: Gloveport, name: str) -> None:
    code = (PROGRAMS / name).read_text()
    assert _seen(await models.run(code)) == _seen(await models.run(code, engine="deno"))
