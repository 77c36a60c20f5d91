"""One ordered stream of events: clocks, randomness, timers and replies come from it, one at a time (design §2)."""

import asyncio
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.prepare import prepare
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.pool import Pool
from gloveport.sandbox.run_attempt import RunAttempt, RunSetup
from gloveport.sandbox.worker import Worker
from gloveport.types import Limits, LogLine, ToolCall

pytestmark = pytest.mark.integration

START = 1_700_000_000_000_000


async def test_the_clock_stands_still_between_events_and_advances_with_each_reading(port: Gloveport) -> None:
    outcome = await port.run("""
      const first = performance.now(); const begin = Date.now();
      for (let i = 0; i < 1e7; i++);
      const second = performance.now();
      await new Promise((r) => setTimeout(r, 30));
      return [second - first, Date.now() - begin];
    """)
    assert 0 < outcome.value[0] < 0.01
    assert outcome.value[1] >= 29


@pytest.mark.parametrize(
    "reading",
    [
        "Date.now()",
        "+new Date()",
        "Date.parse(Date())",
        "Number(new Intl.DateTimeFormat('en', {year: 'numeric'}).format())",
        "Number(new Intl.DateTimeFormat('en', {year: 'numeric'}).formatToParts()[0].value)",
        "Temporal.Now.instant().epochMilliseconds",
        "Temporal.Now.plainDateISO().year",
        "performance.timeOrigin",
        "new File([], 'x').lastModified",
        "new Event('x').timeStamp",
        "Math.random()",
        "crypto.randomUUID()",
        "crypto.getRandomValues(new Uint32Array(4))",
        "new Uint8Array(await crypto.subtle.exportKey('raw', await crypto.subtle.generateKey({name: 'HMAC', hash: 'SHA-256'}, true, ['sign'])))",
        "new Error('x').stack",
        "import.meta.url",
        "await (async () => { const f = new FormData(); f.append('a', new Blob(['x'])); return new Response(f).text() })()",
        "(() => { try { (null as any).x } catch (e) { return (e as Error).stack } })()",
        "[...'abcdefgh'].sort(() => Math.random() - 0.5).join('')",
        "new Date(2020, 5, 1).getTimezoneOffset() + new Date(0).toString() + new Date(0).toLocaleString()",
        "Intl.DateTimeFormat().resolvedOptions().timeZone + new Intl.NumberFormat().resolvedOptions().locale",
    ],
)
async def test_every_reading_is_a_function_of_the_start_event(reading: str) -> None:
    seen = [await replay(f"return {reading}", seed=b"\7" * 32) for _ in range(2)]
    assert seen[0] == seen[1]
    assert seen[0].value is not None
    if "random" in reading.lower() or "generateKey" in reading:
        assert (await replay(f"return {reading}", seed=b"\x08" * 32)).value != seen[0].value


async def replay(code: str, seed: bytes) -> Any:
    launcher = Pool(DENO.launch(ProcessOptions("deno")), size=0, minimum="kernel", start=Worker.start)
    try:
        ending = await RunAttempt(await launcher.take(), Silent(), Limits()).run(
            prepare(code), RunSetup(seed=seed, now=START)
        )
    finally:
        await launcher.close()
    assert ending.error is None, ending.error
    return type(ending)(value=ending.value, pending=ending.pending, warnings=ending.warnings)


class Silent:
    """A port that answers nothing."""

    async def call(self, call: ToolCall) -> Any:
        return None

    def call_sync(self, name: str, args: list[Any]) -> Any:
        return []

    def log(self, line: LogLine) -> None:
        pass

    def emit(self, value: Any) -> None:
        pass


async def test_replies_are_taken_one_at_a_time_with_the_guest_quiet_in_between() -> None:
    gates: dict[int, asyncio.Future[int]] = {}
    all_asked = asyncio.Event()

    async def ask(n: int) -> int:
        gates[n] = asyncio.get_running_loop().create_future()
        if len(gates) == 3:
            all_asked.set()
        return await gates[n]

    async with Gloveport(tools=[ask], spare=0) as own:
        run = asyncio.create_task(
            own.run("""
              const seen: string[] = [];
              await Promise.all([1, 2, 3].map(async (n) => {
                const r = await tools.ask(n); seen.push(`got ${r}`);
                await null; await Promise.resolve().then(() => 1);
                const h = await crypto.subtle.digest("SHA-256", new Uint8Array(100000)); seen.push(`end ${r}`);
              }));
              return seen;
            """)
        )
        await all_asked.wait()
        for n in (2, 3, 1):  # all in one turn of the host's loop: they arrive in one write
            gates[n].set_result(n)
        outcome = await run
    assert outcome.value == ["got 2", "end 2", "got 3", "end 3", "got 1", "end 1"]


async def test_timers_fire_in_their_order_with_their_microtasks_in_between(port: Gloveport) -> None:
    outcome = await port.run("""
      const seen: string[] = [];
      const at = (name: string, ms: number) => setTimeout(() => { seen.push(name); Promise.resolve().then(() => seen.push(name + "'")) }, ms);
      at("c", 20); at("a", 0); at("b", 0); setImmediate(() => seen.push("i"));
      const every = setInterval(() => seen.push("t"), 4);
      await new Promise((r) => setTimeout(r, 10)); clearInterval(every);
      const never = at("never", 1); clearTimeout(never);
      await new Promise((r) => setTimeout(r, 30));
      return seen.filter((x) => x !== "t");
    """)
    assert outcome.value == ["a", "a'", "b", "b'", "i", "c", "c'"]


async def test_a_timer_cleared_twice_hides_no_other_and_leaves_none(port: Gloveport) -> None:
    clear_all = """
      const once = setTimeout(() => {}, 60000); clearTimeout(once); clearTimeout(once); clearTimeout(once + 1000);
      let turns = 0;
      await new Promise<void>((resolve) => {
        const every = setInterval(() => { if (++turns === 2) { clearInterval(every); clearInterval(every); resolve() } }, 1);
      });
    """
    assert (await port.run(f"{clear_all} return turns")).value == 2
    outcome = await port.run(f"{clear_all} await new Promise(() => {{}})")
    assert outcome.error is not None
    assert outcome.error.code == "never-settles"


async def test_a_timer_that_sets_itself_again_does_not_starve_replies(port: Gloveport) -> None:
    outcome = await port.run("""
      let turns = 0; let done = false;
      const spin = () => { turns++; if (!done) setTimeout(spin, 0) }; spin();
      const sum = await tools.add(1, 2); done = true; return [sum, turns > 0];
    """)
    assert outcome.value == [3, True]


async def test_a_look_up_answers_synchronously_while_replies_are_under_way(port: Gloveport) -> None:
    outcome = await port.run("""
      const pending = [1, 2, 3].map((n) => tools.add(n, 0));
      const names = Object.keys(tools);
      return [await Promise.all(pending), names.includes("add")];
    """)
    assert outcome.value == [[1, 2, 3], True]
