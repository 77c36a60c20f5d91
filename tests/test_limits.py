"""Limits are enforced from outside, name themselves, and leave the host as it was (threats S11, S12, S14, B12)."""

import asyncio
import resource
import time

import pytest

from gloveport import Gloveport

SPINS = {
    "loop": "while (true) {}",
    "async loop": "while (true) await null",
    "microtasks": "const f = (): any => Promise.resolve().then(f); await f()",
    "generator": "for (const x of (function* () { while (true) yield 1 })()) {}",
    "regex": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "sort": "while (true) [3, 2, 1].sort(() => Math.random() - 0.5)",
    "comparator": "[1, 2].sort(() => { while (true) {} })",
    "json": "const o: any = {a: 1, toJSON() { while (true) {} }}; JSON.stringify(o)",
    "getter": "return { get x() { while (true) {} } }",
    "proxy": "return new Proxy({}, { ownKeys() { while (true) {} } })",
    "string": "'a'.repeat(2 ** 20).split('').map((c: string) => { while (true) {} })",
    "bigint": "let x = 3n; while (true) x = (x * x) % (2n ** 200000n)",
    "catch": "while (true) { try { throw 1 } catch { continue } }",
    "finally": "for (;;) { try { await tools.add(1, 1) } finally { continue } }",
    "timer": "setInterval(() => {}, 0); await new Promise(() => {})",
    "then": "return { then(resolve: any) { while (true) {} } }",
}


@pytest.mark.parametrize("engine", ["deno", "quickjs"])
@pytest.mark.parametrize("name", SPINS)
async def test_a_spin_is_ended_in_time(port: Gloveport, name: str, engine: str) -> None:
    limits = {"wall_seconds": 1.0, "cpu_seconds": 30, "max_calls": 1_000_000}
    began = time.monotonic()
    outcome = await port.run(SPINS[name], limits=limits, engine=engine)
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert time.monotonic() - began < 30


async def test_computing_is_limited_apart_from_waiting(port: Gloveport) -> None:
    outcome = await port.run("while (true) {}", limits={"cpu_seconds": 0.5, "wall_seconds": 60})
    assert outcome.error is not None
    assert outcome.error.code == "cpu-limit"
    assert 0.4 < outcome.usage.cpu_seconds < 10
    outcome = await port.run(
        "await new Promise((r) => setTimeout(r, 900)); return 'slept'", limits={"cpu_seconds": 0.5, "wall_seconds": 60}
    )
    assert outcome.value == "slept"


BOMBS = {
    "arrays": "const a = []; while (true) a.push(new Array(1e5).fill(1.5))",
    "objects": "const a: any[] = []; while (true) a.push({a: {b: {c: a.length}}})",
    "strings": "const a: string[] = []; while (true) a.push(Math.random().toString(36).repeat(1000))",
    "ropes": "let s = 'x'; while (true) { s = s + s + Math.random(); s.charCodeAt(5); if (s.length > 2 ** 28) s = s.slice(1) }\n",
    "buffers": "const a = []; while (true) a.push(new Uint8Array(1e7).fill(1))",
    "one buffer": "return new Uint8Array(2 ** 31).fill(1).length",
    "bigint": "const a: bigint[] = []; let x = 2n ** 100000n; while (true) { x = x * x % (2n ** 8000000n) + 1n; a.push(x) }",
    "map": "const m = new Map(); let i = 0; while (true) m.set(i++, {i})",
    "closures": "const a: any[] = []; while (true) { const big = new Array(1000).fill(0); a.push(() => big) }",
    "promises": "const a: any[] = []; while (true) a.push(new Promise((r) => setTimeout(r, 1e9)))",
    "errors": "const a: any[] = []; while (true) a.push(new Error('x'.repeat(1000)))",
    "regex": "const a: any[] = []; let i = 0; while (true) { const r = new RegExp('(a|b|c){1,50}' + i++); r.test('abcabc'); a.push(r) }",
    "structured clone": "let a: any = [1]; while (true) a = structuredClone([a, a, 'y'.repeat(1000)])",
}


@pytest.mark.parametrize("engine", ["deno", "quickjs"])
@pytest.mark.parametrize("name", BOMBS)
async def test_a_memory_bomb_is_capped_and_the_host_does_not_grow(port: Gloveport, name: str, engine: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limits = {"memory_mb": 128, "cpu_seconds": 60, "wall_seconds": 60}
    outcome = await port.run(BOMBS[name], limits=limits, engine=engine)
    assert outcome.error is not None
    assert outcome.error.code in ("memory-limit", "program-failed"), outcome.error
    if outcome.error.code == "program-failed":
        assert outcome.error.type == "RangeError"
    assert outcome.usage.memory_peak_mb < 128 * 1.1 + 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


async def test_a_program_that_makes_much_garbage_lives(port: Gloveport) -> None:
    code = "let n = 0; for (let i = 0; i < 4000; i++) n += new Array(20000).fill(i).length; return n"
    outcome = await port.run(code, limits={"memory_mb": 128})
    assert outcome.value == 80_000_000


async def test_what_was_logged_and_called_is_kept_when_a_limit_ends_the_run(port: Gloveport) -> None:
    outcome = await port.run(
        "console.log('before'); await tools.add(1, 2); console.log('after'); while (true) {}",
        limits={"wall_seconds": 1},
    )
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert [line.text for line in outcome.logs] == ["before", "after"]
    assert [(call.tool, call.status) for call in outcome.calls] == [("add", "ok")]


async def test_a_call_that_was_under_way_at_the_limit_is_named_as_unfinished(port: Gloveport) -> None:
    outcome = await port.run("await tools.forever()", limits={"wall_seconds": 0.5})
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert outcome.calls[0].tool == "forever"
    assert outcome.calls[0].status != "ok"


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


async def test_deep_recursion_is_an_ordinary_failure(port: Gloveport) -> None:
    outcome = await port.run("const f = (n: number): number => f(n + 1) + 1; f(0)")
    assert outcome.error is not None
    assert outcome.error.type == "RangeError"


async def test_code_over_the_limit_is_refused_before_it_is_parsed(port: Gloveport) -> None:
    outcome = await port.run("1;" * 10, limits={"max_code_bytes": 10})
    assert outcome.error is not None
    assert outcome.error.code == "code-too-large"
