"""Limits are enforced from outside, the error names the limit, and the host is unharmed (threats S11, S13, S14, B12)."""

import asyncio
import resource
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.sandbox import worker
from tests.engines import ENGINES, Engine

pytestmark = pytest.mark.integration


async def test_computing_is_limited_apart_from_waiting(port: Gloveport) -> None:
    code = "await tools.add(1, 1);\nwhile (true) {}"
    outcome = await port.run(code, limits={"cpu_seconds": 0.5, "wall_seconds": 300})
    assert outcome.error is not None
    assert outcome.error.code == "cpu-limit", outcome.error
    assert outcome.error.message.endswith(
        "; it was computing after the call of tools.add in line 1; its only loop begins in line 2"
    )
    assert 0.4 < outcome.usage.cpu_seconds < 10
    outcome = await port.run(
        "await new Promise((r) => setTimeout(r, 900)); return 'slept'", limits={"cpu_seconds": 0.5, "wall_seconds": 300}
    )
    assert outcome.value == "slept"


async def test_a_program_that_makes_much_garbage_lives(port: Gloveport) -> None:
    code = "let n = 0; for (let i = 0; i < 4000; i++) n += new Array(20000).fill(i).length; return n"
    outcome = await port.run(code, limits={"memory_mb": 128})
    assert outcome.value == 80_000_000


async def test_buffers_that_need_too_much_memory_end_a_run_by_its_limit(port: Gloveport) -> None:
    code = "const kept = [];\nfor (;;) kept.push(new Uint8Array(1e6).fill(1));"
    found = [(await port.run(code, limits={"memory_mb": 128, "wall_seconds": 300})).error for _ in range(5)]
    assert {(error.code, error.setting) for error in found if error} == {("memory-limit", "raise memory_mb")}
    lines = {error.line for error in found if error}
    assert 2 in lines
    assert lines <= {2, None}  # None where the engine itself is the first to need more
    thrown = "const e = new RangeError('mine'); Object.defineProperty(e, 'message', {get() { throw 1 }}); throw e"
    error = (await port.run(thrown)).error
    assert error is not None
    assert error.code == "program-failed"


async def test_a_result_larger_than_a_message_names_both_limits(port: Gloveport) -> None:
    for limits in ({}, {"max_result_bytes": 64 * 2**20}):
        error = (await port.run("'x'.repeat(20_000_000)", limits=limits)).error
        assert error is not None
        assert (error.code, error.setting) == (
            "result-too-large",
            "raise max_result_bytes, and max_frame_bytes if that is smaller",
        )
    both = {"max_result_bytes": 64 * 2**20, "max_frame_bytes": 64 * 2**20}
    assert (await port.run("'x'.repeat(20_000_000)", limits=both)).ok


async def test_an_engine_with_more_threads_than_any_honest_one_is_ended(
    port: Gloveport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a user namespace of its own, no kernel limit bounds a guest's threads tightly."""
    monkeypatch.setattr(worker, "MAX_THREADS", 2)  # Deno always has more
    outcome = await port.run("while (true) {}")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message[:20]) == ("sandbox-crashed", "the engine had more ")


async def test_what_was_logged_and_called_is_kept_when_a_limit_ends_the_run(port: Gloveport) -> None:
    outcome = await port.run(
        "console.log('before'); await tools.add(1, 2); console.log('after'); while (true) {}",
        limits={"cpu_seconds": 1, "wall_seconds": 300},
    )
    assert outcome.error is not None
    assert outcome.error.code == "cpu-limit"
    assert [line.text for line in outcome.logs] == ["before", "after"]
    assert [(call.tool, call.status) for call in outcome.calls] == [("add", "ok")]


async def test_a_call_that_was_under_way_at_the_limit_is_named_as_unfinished(port: Gloveport) -> None:
    outcome = await port.run("await tools.forever()", limits={"wall_seconds": 3})
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert outcome.calls[0].tool == "forever"
    assert outcome.calls[0].status != "ok"


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        ("const n = 1;\nawait new Promise((done) => setTimeout(done, 60_000))", "; it was waiting for a timer", 2),
        (
            "const wait = (ms) => new Promise((done) => setTimeout(done, ms));\nawait wait(9e4)",
            "; it was waiting for a timer",
            1,
        ),
        (
            "setTimeout(() => 1, 1);\nawait new Promise((done) => setTimeout(done, 60_000))",
            "; it was waiting for a timer",
            None,
        ),
        ("setTimeout(() => 1, 60_000);\nfor (;;) { Math.sqrt(2) }", "; its only loop begins in line 2", 2),
    ],
    ids=["one timer", "in a function", "which of two", "computing"],
)
async def test_a_time_limit_names_the_timer_that_the_program_waited_for(code: str, message: str, line: int | None) -> None:
    async with Gloveport(limits={"wall_seconds": 2}) as port:
        error = (await port.run(code)).error
    assert error is not None
    assert (error.code, error.message, error.line) == ("time-limit", f"the run took longer than 2 s{message}", line)


LOOPS = {  # of each language; an engine that tells its place is in the loop, at its head or below
    "typescript": "let n = 0;\n// while (one waits) do {\nwhile (n >= 0) {\n  n += 1;\n}",
    "python": "n = 0\n# while one waits:\nwhile n >= 0:\n    n += 1",
}


@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_a_limit_names_the_line_of_a_loop_on_every_engine(engine: Engine) -> None:
    async with Gloveport(limits={"cpu_seconds": 0.4}) as port:
        error = (await port.run(LOOPS[engine.language], language=engine.language, engine=engine.name)).error
    assert error is not None
    assert (error.code, error.line in (3, 4)) == ("cpu-limit", True), error


async def test_a_flood_of_calls_is_ended_at_max_calls(port: Gloveport) -> None:
    outcome = await port.run(
        "await Promise.all(Array.from({length: 10000}, () => tools.add(1, 1).catch(() => 0)))",
        limits={"max_calls": 100},
    )
    assert outcome.error is not None
    assert outcome.error.code == "call-limit"
    assert len(outcome.calls) <= 100


async def test_no_more_than_max_concurrent_calls_run_at_once() -> None:
    running = 0
    most = 0

    async def work() -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return 1

    async with Gloveport(tools=[work], limits={"max_concurrent_calls": 3}, spare=0) as own:
        outcome = await own.run("return (await Promise.all(Array.from({length: 30}, () => tools.work()))).length")
    assert outcome.value == 30
    assert most == 3


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (
            "javascript",
            "return (await Promise.all(Array.from({length: 1000}, () => tools.big({pad: 'x'.repeat(1000)})))).length",
        ),
        ("python", "import asyncio\nlen(await asyncio.gather(*(tools.big(pad='x' * 1000) for _ in range(1000))))"),
    ],
)
async def test_a_program_that_writes_much_before_it_reads_much_does_not_stand_still(language: Any, code: str) -> None:
    async def big(pad: str) -> str:
        return pad * 100

    async with Gloveport(tools=[big], spare=0) as own:
        outcome = await own.run(code, language=language, limits={"memory_mb": 512})
    assert outcome.value == 1000, outcome.error


async def test_a_gigabyte_of_output_is_cut_with_a_count(port: Gloveport) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = await port.run(
        "const line = 'x'.repeat(2 ** 20); for (let i = 0; i < 1024; i++) console.log(line); return 'end'"
    )
    assert outcome.value == "end"
    assert sum(len(line.text) for line in outcome.logs) <= 256 * 1024
    assert any("were left out" in warning for warning in outcome.warnings)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("return 'x'.repeat(9 * 2 ** 20)", "result-too-large"),
        ("return 'x'.repeat(40 * 2 ** 20)", "result-too-large"),
        ("for (let i = 0; i < 20; i++) emit('x'.repeat(2 ** 20))", "result-too-large"),
    ],
)
async def test_an_oversized_result_is_refused(port: Gloveport, code: str, error: str) -> None:
    outcome = await port.run(code)
    assert outcome.error is not None
    assert outcome.error.code == error


async def test_an_oversized_argument_is_a_catchable_error(port: Gloveport) -> None:
    outcome = await port.run("return await tools.echo({value: 'x'.repeat(20 * 2 ** 20)}).catch((e: any) => e.code)")
    assert outcome.value == "frame-too-large"


async def test_an_oversized_tool_result_is_a_catchable_error() -> None:
    async def big() -> str:
        return "x" * (17 * 2**20)

    async with Gloveport(tools=[big], spare=0) as own:
        outcome = await own.run("return await tools.big().catch((e: any) => [e.name, e.code])")
    assert outcome.value == ["ToolError", "frame-too-large"]


DEEP = "let x: any = []; for (let i = 0; i < 3e5; i++) x = [x];"
DEPTHS = {
    "a function": "const f = (n: number): number => f(n + 1) + 1; f(0)",
    "a getter": "const o = { get x(): any { return this.x } }; o.x",
    "a proxy": "const p: any = new Proxy({}, { get: (_, name) => p[name] }); p.x",
    "toString": "const o = { toString: (): string => `${o}` }; `${o}`",
    "a comparison while sorting": "const f = (): any => [1, 2].sort(f); f()",
    "a replacement": "const f = (): any => 'a'.replace(/a/, f); f()",
    "text to JSON": f"{DEEP} JSON.stringify(x); throw new RangeError('written')",
    "JSON to values": "JSON.parse('['.repeat(3e5) + ']'.repeat(3e5)); throw new RangeError('read')",
    "a clone": f"{DEEP} structuredClone(x)",
    "an array flattened": f"{DEEP} x.flat(Infinity)",
    "the result": f"{DEEP} return x",
    "an argument": f"{DEEP} await tools.echo({{ value: x }})",
    "a line of output": f"{DEEP} console.log(x); throw new RangeError('said')",
    "a pattern": "new RegExp('('.repeat(5e4) + ')'.repeat(5e4)).test('x'); throw new RangeError('matched')",
    "causes of an error": "let e: any = null; for (let i = 0; i < 1e5; i++) e = new Error('x', { cause: e }); throw e",
}


@pytest.mark.parametrize("name", DEPTHS)
async def test_depth_without_a_bottom_is_a_failure_of_the_program_and_no_more(port: Gloveport, name: str) -> None:
    outcome = await port.run(DEPTHS[name], limits={"memory_mb": 512})
    assert outcome.error is not None
    assert outcome.error.code in ("program-failed", "bad-value"), outcome.error


LARGE_CALLS = {
    "typescript": "const text = 'x'.repeat(1e6);\n"
    "(await Promise.all(Array.from({ length: 100 }, () => tools.length(text)))).length",
    "python": "import asyncio\ntext = 'x' * 1_000_000\nlen(await asyncio.gather(*(tools.length(text=text) for _ in range(100))))",
}


@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_a_hundred_large_calls_at_once_need_no_more_memory_than_a_few(engine: Engine) -> None:
    async with Gloveport(tools=[length]) as port:
        outcome = await port.run(LARGE_CALLS[engine.language], language=engine.language, engine=engine.name)
    assert outcome.value == 100, outcome.error


async def length(text: str) -> int:
    """Return the length of a text."""
    return len(text)


async def test_code_over_the_limit_is_refused_before_it_is_parsed(port: Gloveport) -> None:
    outcome = await port.run("1;" * 10, limits={"max_code_bytes": 10})
    assert outcome.error is not None
    assert outcome.error.code == "code-too-large"


async def test_a_program_that_gets_no_processor_is_not_said_to_wait(
    port: Gloveport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.host.runs.run_request.MAX_IDLE_CPU_SHARE", 2.0)  # so that no share is enough
    for code, waits in (("for (;;);", False), ("await new Promise((done) => setTimeout(done, 60_000))", True)):
        error = (await port.run(code, limits={"wall_seconds": 0.5})).error
        assert error is not None
        assert (error.code, "waiting for a timer" in error.message) == ("time-limit", waits), error
