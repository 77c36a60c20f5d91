"""A run is a function of its events: replayed years later, elsewhere, it says the same, byte for byte (design §2)."""

import asyncio
import os
import random
import textwrap
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as given_examples
from hypothesis import strategies as st

from gloveport import Gloveport, OptionError
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.launcher import Launcher
from gloveport.sandbox.replay import replay as replay_on
from gloveport.sandbox.worker import Worker
from gloveport.types import Divergence, Limits
from tests.engines import ENGINES, Engine, Per, said
from tests.replaying import Elsewhere

chance = random.Random()
REPLAYS = int(os.environ.get("REPLAYS", "40"))  # programs of each engine; `make replays` makes more


async def slow(n: int) -> int:
    """Its argument, after a while that nobody can foresee."""
    for _ in range(chance.randrange(20)):
        await asyncio.sleep(0)
    if chance.random() < 0.2:
        await asyncio.sleep(chance.random() / 500)
    return n


async def broken(n: int) -> None:
    """Fail."""
    await slow(n)
    raise ValueError(f"broken {n}")


async def given(value: list[float]) -> list[float]:
    """Its argument."""
    return value


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    started = Elsewhere()
    yield started
    started.close()


@pytest.fixture(scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gloveport]:
    store = tmp_path_factory.mktemp("replay") / "store.sqlite"
    async with Gloveport(tools=[slow, broken, given], spare=1, store=store) as opened:
        yield opened


# Everything known that could tell one run from another.

JS, QUICKJS, PY, MONTY = ENGINES
LEAKS: dict[str, tuple[Engine, str]] = {
    "Date": (JS, "[Date.now(), new Date(), Date(), new Date().toLocaleString()]"),
    "Intl.DateTimeFormat().format()": (JS, "const f = new Intl.DateTimeFormat('en', {second: 'numeric', fractionalSecondDigits: 3} as any); [f.format(), f.formatToParts().map((p) => p.value), f.format(undefined)]"),
    "Temporal.Now": (JS, "const N = Temporal.Now; [N.instant(), N.zonedDateTimeISO(), N.plainDateTimeISO(), N.plainTimeISO(), N.plainDateISO(), N.timeZoneId()].map(String)"),
    "File.lastModified": (JS, "new File(['x'], 'x').lastModified"),
    "performance": (JS, "[performance.timeOrigin, performance.now(), JSON.stringify(performance), new Event('x').timeStamp]"),
    "AbortSignal.timeout": (JS, "const s = AbortSignal.timeout(5); await new Promise((r) => s.addEventListener('abort', r)); [String(s.reason), Date.now()]"),
    "timers": (JS, "const a = Date.now(); const t: any[] = []; setInterval(() => t.push(Date.now()), 2); await new Promise((r) => setTimeout(r, 9)); [a, t]"),
    "console.time": (JS, "console.time('a'); await tools.slow(1); console.timeLog('a'); console.timeEnd('a')"),
    "import.meta.url": (JS, "const m: any = import.meta; [m.url, m.filename, m.resolve?.('./x')]"),
    "stacks": (JS, "const bad = () => { (null as any).x }; try { bad() } catch (e: any) { console.log(e.stack) }; await tools.broken(1).catch((e: any) => console.log(e.stack)); new Error('x').stack"),
    "stacks that the program formats": (JS, "Error.prepareStackTrace = (_: any, s: any) => s.map((x: any) => [x.getFileName(), x.getScriptNameOrSourceURL(), `${x}`]); [new Error('x').stack, await tools.broken(1).catch((e: any) => e.stack)]"),
    "syntax errors of the engine": (JS, "let a: any = 1; let a: any = 2; return a"),
    "Math.random": (JS, "[Math.random(), [...'abcdefgh'].sort(() => Math.random() - 0.5)]"),
    "crypto": (JS, "[crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(8))]"),
    "subtle.generateKey": (JS, "const k: any = await crypto.subtle.generateKey({name: 'AES-GCM', length: 256}, true, ['encrypt']); new Uint8Array(await crypto.subtle.exportKey('raw', k))"),
    "form boundaries": (JS, "const f = new FormData(); f.append('a', new Blob(['x'])); const r = new Response(f); [r.headers.get('content-type'), await r.text()]"),
    "hashing 5 MB among calls": (JS, "const seen: any[] = []; const hash = async (n: number) => { seen.push(n, new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(5e6).fill(n)))[0]); console.log(n) }; await Promise.all([hash(0), ...[1, 2, 3].map(async (n) => hash(await tools.slow(n)))]); seen"),
    "hashing beside microtasks": (JS, "const seen: number[] = []; for (let i = 0; i < 40; i++) { let done = false, ticks = 0; crypto.subtle.digest('SHA-256', new Uint8Array(1e5)).then(() => done = true); while (!done && ticks < 50) { await null; ticks++ } seen.push(ticks) } seen"),
    "blobs and streams among calls": (JS, "const zip = (n: number) => new Response(new Blob(['x'.repeat(n)]).stream().pipeThrough(new CompressionStream('gzip'))).bytes(); await Promise.all([new Blob(['x'.repeat(1e6)]).text().then((t) => console.log(t.length)), tools.slow(1).then(console.log), zip(1e5).then((b) => console.log(b.length)), tools.slow(2).then(console.log)])"),
    "worker threads, shared memory, finalizers": (JS, "['Worker', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry', 'MessageChannel'].map((n) => typeof (globalThis as any)[n])"),
    "locale and time zone": (JS, "[Intl.DateTimeFormat().resolvedOptions(), new Intl.NumberFormat().resolvedOptions().locale, (1234.5).toLocaleString(), 'i'.toLocaleUpperCase(), new Date(2020, 5, 1).toString(), new Date(0).getTimezoneOffset(), navigator.language]"),
    "what is printed": (JS, "console.log(Promise.resolve(1), new Proxy({}, {}), new Date(), new Error('x'), performance, crypto, process, globalThis); console.trace('here'); console.table([[1]])"),
    "unhandled rejections": (JS, "for (const n of [1, 2, 3]) { tools.broken(n); Promise.reject(new Error(`${n}`)) } await tools.slow(1)"),
    "look-ups among calls": (JS, "const calls = [1, 2, 3].map((n) => tools.slow(n)); console.log(Object.keys(tools)); await Promise.all(calls)"),
    "quickjs: time": (QUICKJS, "console.time('a'); const a = [Date.now(), new Date(), Date(), performance.now(), performance.timeOrigin]; await new Promise((r) => setTimeout(r, 5)); await tools.slow(1); console.timeEnd('a'); [a, new Date(2020, 5, 1).toString(), new Date(0).getTimezoneOffset()]"),
    "quickjs: timers": (QUICKJS, "const t: any[] = []; setInterval(() => t.push(Date.now()), 2); await new Promise((r) => setTimeout(r, 9)); t"),
    "quickjs: randomness": (QUICKJS, "[Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(8)), [...'abcdefgh'].sort(() => Math.random() - 0.5)]"),
    "quickjs: stacks": (QUICKJS, "const bad = () => { (null as any).x }; try { bad() } catch (e: any) { console.log(e.stack) }; await tools.broken(1).catch((e: any) => console.log(e.stack)); new Error('x').stack"),
    "quickjs: stacks that the program formats": (QUICKJS, "Error.prepareStackTrace = (_: any, s: any) => s.map((x: any) => [x.getFileName(), x.getScriptNameOrSourceURL(), `${x}`]); [new Error('x').stack, await tools.broken(1).catch((e: any) => e.stack)]"),
    "quickjs: syntax errors of the engine": (QUICKJS, "let a: any = 1; let a: any = 2; return a"),
    "quickjs: what is printed": (QUICKJS, "console.log(Promise.resolve(1), new Proxy({}, {}), new Date(), new Error('x'), performance, crypto, process, globalThis, new WeakMap(), Symbol('a'), () => 1, [,1], new Map([[{}, new Set([1])]])); console.trace('here'); console.table([[1], {a: 2}])"),
    "quickjs: unhandled rejections": (QUICKJS, "for (const n of [1, 2, 3]) { tools.broken(n); Promise.reject(new Error(`${n}`)) } await tools.slow(1)"),
    "quickjs: look-ups among calls": (QUICKJS, "const calls = [1, 2, 3].map((n) => tools.slow(n)); console.log(Object.keys(tools)); await Promise.all(calls)"),
    "quickjs: out of memory": (QUICKJS, "let n = 0; try { const a: any[] = []; while (true) a.push(new Uint8Array(1e6)) } catch (e) { console.log(String(e)) }; await tools.slow(1)"),
    "quickjs: recursion": (QUICKJS, "let n = 0; const f = () => { n++; f() }; try { f() } catch (e) { console.log(n, String(e)) }"),
    "quickjs: the order of keys": (QUICKJS, "const o: any = {}; for (const k of 'zyxwv') o[k + Math.random()] = 1; [Object.keys(o), JSON.stringify(o), [...new Set(Object.keys(o))]]"),
    "time": (PY, "import time\n[time.time(), time.time_ns(), time.monotonic(), time.perf_counter_ns(), time.process_time(), time.thread_time(), time.ctime(), time.localtime()[:], time.strftime('%c %Z'), time.clock_gettime(time.CLOCK_BOOTTIME), time.tzname]"),
    "datetime": (PY, "import datetime as d\n[str(x) for x in (d.datetime.now(), d.datetime.now().astimezone(), d.datetime.utcnow(), d.datetime.now(d.timezone.utc), d.datetime.today(), d.date.today())]"),
    "sleeping": (PY, "import asyncio, time\na = time.time()\ntime.sleep(0.002)\nawait asyncio.sleep(0.002)\n[a, time.time(), asyncio.get_running_loop().time()]"),
    "os.times and getrusage": (PY, "import os, resource\nx = sum(range(10 ** 5))\n[os.times()[:], resource.getrusage(resource.RUSAGE_SELF)[:]]"),
    "times that the library writes": (PY, "import gzip, zipfile, io, email.utils, logging, timeit\nb = io.BytesIO()\nwith zipfile.ZipFile(b, 'w') as z:\n    z.writestr('a', 'b')\nlogging.basicConfig(format='%(asctime)s %(msecs)f %(relativeCreated)f %(process)d %(thread)d')\nlogging.error('x')\n[gzip.compress(b'a'), b.getvalue(), email.utils.formatdate(), email.utils.make_msgid(domain='x'), timeit.timeit('1', number=9)]"),
    "sqlite": (PY, "import sqlite3\nsqlite3.connect(':memory:').execute(\"select random(), randomblob(4), datetime('now'), strftime('%f', 'now'), time(), current_timestamp, julianday('now')\").fetchall()"),
    "random": (PY, "import random, tempfile\n[random.random(), random.SystemRandom().random(), random.Random().random(), random.sample(range(99), 5), next(tempfile._get_candidate_names())]"),
    "urandom, uuid, secrets": (PY, "import os, uuid, secrets, ssl\n[os.urandom(3), os.getrandom(3), str(uuid.uuid1()), str(uuid.uuid4()), uuid.getnode(), secrets.token_hex(4), ssl.RAND_bytes(4)]"),
    "hash seed": (PY, "[hash('abc'), hash(b'abc'), list({'b', 'a', 'c', 'd', 'e'}), list(frozenset('xyz'))]"),
    "addresses": (PY, "class A: pass\nx = [A() for _ in range(9)]\n[repr(x), id(x), hash(x[0]), repr(lambda: 1), repr(object()), [id(y) for y in set(x)], hash(float('nan')), [id(bytearray(n * 99)) for n in range(30)]]"),
    "garbage collection": (PY, "import gc, weakref\ngone = []\nclass C:\n    def __init__(self, n):\n        self.me = self\n        weakref.finalize(self, gone.append, n)\nfor n in range(2000):\n    C(n)\n    if n % 100 == 0:\n        await tools.slow(n)\n[gone, gc.get_count(), gc.get_stats()]"),
    "the process": (PY, "import os, sys, threading\n[os.getpid(), os.getppid(), os.cpu_count(), threading.get_native_id(), threading.get_ident(), sys.argv, sys.executable, sys.path, os.getcwd(), sys.getallocatedblocks(), sorted(sys.modules)]"),
    "python's locale and time zone": (PY, "import locale, calendar, time\n[list(locale.getlocale()), locale.localeconv(), list(calendar.day_name), f'{1234.5:n}', time.timezone, locale.getpreferredencoding()]"),
    "threads": (PY, "import threading, concurrent.futures, asyncio\nwith concurrent.futures.ThreadPoolExecutor(4) as pool:\n    names = list(pool.map(lambda n: (n, threading.current_thread().name), range(5)))\n[names, await asyncio.to_thread(threading.get_ident)]"),
    "the order of tasks": (PY, "import asyncio\nasync def f(n):\n    print(await tools.slow(n))\ntasks = {asyncio.create_task(f(n)) for n in range(5)}\ndone, rest = await asyncio.wait(tasks, return_when='FIRST_COMPLETED')\n[repr(t) for t in done] + [t.get_name() for t in rest]"),
    "as_completed": (PY, "import asyncio\nfor each in asyncio.as_completed([tools.slow(n) for n in range(5)]):\n    print(await each)"),
    "tracebacks": (PY, "import traceback\ntry:\n    await tools.broken(1)\nexcept ToolError:\n    traceback.print_exc()"),
    "failures that nobody saw": (PY, "import asyncio\nfor n in range(3):\n    tools.broken(n)\n    asyncio.create_task(tools.broken(n))\nawait tools.slow(1)"),
    "monty: parallel calls": (MONTY, "import asyncio\nr = await asyncio.gather(*[tools.slow(n) for n in range(6)])\nprint(r)\nr"),
    "monty: calls one after another": (MONTY, "r = []\nfor n in range(5):\n    r.append(await tools.slow(n))\n    print(n)\nr"),
    "monty: the order of returns": (MONTY, "import asyncio\nseen = []\nasync def one(n):\n    seen.append(await tools.slow(n))\n    seen.append(await tools.slow(n + 10))\nawait asyncio.gather(*[one(n) for n in range(5)])\nseen"),
    "monty: time": (MONTY, "import asyncio, time, datetime\na = time.time()\nawait asyncio.gather(asyncio.sleep(0.005), tools.slow(1), asyncio.sleep(0.002))\ntime.sleep(0.003)\n[a, time.time(), datetime.datetime.now(), time.perf_counter(), time.monotonic_ns(), str(datetime.date.today())]"),
    "monty: randomness": (MONTY, "import random, os\n[random.random(), random.Random().random(), os.urandom(3), random.sample(range(99), 9)]"),
    "monty: order of sets": (MONTY, "class A: pass\nprint({'b', 'a', 'c'}, [A(), lambda: 1], id(A()), hash('a'))\n{'b', 'a', 'c'}"),
    "monty: errors": (MONTY, "try:\n    await tools.broken(1)\nexcept ToolError as e:\n    print(e, e.code)\n1/0"),
    "monty: un-awaited": (MONTY, "tools.slow(1)\ntools.slow(2)\nimport random\nrandom.random()"),
    "monty: late": (MONTY, "a = tools.slow(1)\nb = await tools.slow(2)\nimport time\ntime.sleep(0.002)\n[b, await a, time.time()]"),
    "monty: look-ups": (MONTY, "t = __getToolInterface('slow')\nprint(t)\nawait tools.search('slow')"),
    "monty: polling": (MONTY, "import asyncio\nd = []\nasync def f():\n    d.append(await tools.slow(1))\nasync def p():\n    n = 0\n    while not d:\n        await asyncio.sleep(0)\n        n += 1\n    return n\nawait asyncio.gather(f(), p())"),
    "monty: failing calls in parallel": (MONTY, "import asyncio\nawait asyncio.gather(tools.slow(1), tools.broken(1), tools.slow(2))"),
    "monty: large values": (MONTY, "import random\nr = await tools.given(value=[random.random() for _ in range(30000)])\nr"),
    "monty: failures that nobody saw": (MONTY, "calls = [tools.broken(n) for n in range(3)]\nawait tools.slow(1)\ntry:\n    await calls[1]\nexcept ToolError:\n    pass\nawait tools.slow(2)"),
    "monty: identities": (MONTY, "class A: pass\n[repr([A(), A()]), repr(A), id(A()) == id(A()), hash('abc'), repr(lambda: 1), repr(tools.slow), list({'b', 'a', 'c', 'd'}), repr(tools.slow(1))]"),
    "monty: look-ups among calls": (MONTY, "import asyncio\ncalls = [tools.slow(n) for n in range(3)]\nprint(list(tools), 'slow' in tools)\nawait asyncio.gather(*calls)"),
}  # fmt: skip
ENDS_BADLY = {
    "syntax errors of the engine",
    "quickjs: syntax errors of the engine",
    "monty: errors",
    "monty: failing calls in parallel",
}


@pytest.mark.integration
@pytest.mark.parametrize("name", LEAKS)
async def test_what_could_tell_one_run_from_another_does_not(own: Gloveport, elsewhere: Elsewhere, name: str) -> None:
    engine, code = LEAKS[name]
    chance.seed(name)
    outcome = await own.run(code, language=engine.language, engine=engine.name)
    assert (outcome.error is not None) == (name in ENDS_BADLY), outcome.error
    await assert_replays(own, outcome.run, elsewhere)


# The name is that of the call in a rehearsal. A failed call names its place, also after the first few, if all are in one.
AS_REHEARSED = """
const places = new Set(), name = "warm";
for (let n = 0; n < 40; n++) await tools[name].up().catch((e: any) => places.add(e.stack.split("\\n")[1]));
[...places]
"""


@pytest.mark.integration
@pytest.mark.parametrize("engine", [JS, QUICKJS], ids=str)
async def test_a_rehearsal_leaves_nothing_to_the_run(own: Gloveport, engine: Engine) -> None:
    outcome = await own.run(AS_REHEARSED, engine=engine.name)
    assert len(outcome.value) == 1
    assert "program.ts:3" in outcome.value[0]


@pytest.mark.integration
async def test_a_run_without_a_rehearsal_replays_after_one(tmp_path: Path) -> None:
    async with Gloveport(spare=0, store=tmp_path / "store.sqlite") as port:
        recording = await port.recording((await port.run(AS_REHEARSED, engine="deno")).run)
    launch = DENO.launch(ProcessOptions("deno"))
    launcher = Launcher(launch)
    await launcher.start()
    worker = await Worker.start(launcher)
    worker.send(launch.idle_input)
    try:
        assert await replay_on(worker, recording, Limits()) is None
    finally:
        await launcher.close()


async def assert_replays(own: Gloveport, run: str, elsewhere: Elsewhere) -> None:
    recording = await own.recording(run)
    assert recording.frames[-1].startswith(b'["done"')
    assert await elsewhere.replay(recording) is None


# Whatever programs are put together from.

LEAVES = {
    "call": Per("seen.push(await tools.slow(%d));", "seen.append(await tools.slow(%d))"),
    "failure": Per("await tools.broken(%d).catch((e: any) => seen.push(e.message));", "try:\n    await tools.broken(%d)\nexcept ToolError as e:\n    seen.append(str(e))"),
    "not awaited": Per("tools.slow(%d);", "tools.slow(%d)"),
    "failure that is not awaited": Per("tools.broken(%d);", "tools.broken(%d)"),
    "sleep": Per("await new Promise((r) => setTimeout(r, %d));", "await asyncio.sleep(%d / 1000)"),
    "timer": Per("setTimeout(() => { seen.push('timer'); console.log('fired') }, %d);", "asyncio.get_running_loop().call_later(%d / 1000, print, 'fired')", "await asyncio.sleep(%d / 1000)\nprint('fired')"),
    "date": Per("seen.push(Date.now() + %d, `${new Date()}`, performance.now());", "seen.append([time.time() + %d, str(datetime.datetime.now()), time.perf_counter()])"),
    "random": Per("seen.push(Math.random() + %d, crypto.randomUUID());", "seen.append([random.random() + %d, str(uuid.uuid4()), os.urandom(2)])", "seen.append([random.random() + %d, os.urandom(2)])"),
    "hash": Per("seen.push(new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(1e5 * %d)))[0]);", "seen.append(hashlib.sha256(b'x' * (10 ** 5 * %d)).hexdigest())", quickjs="seen.push(new Uint8Array(1e5 * %d).length);"),
    "print": Per("console.log(%d, seen);", "print(%d, seen)"),
    "emit": Per("emit([%d, seen.length]);", "emit([%d, len(seen)])"),
    "step": Per("seen.push(await step('a', () => tools.slow(%d)));", "seen.append(await step('a', tools.slow, %d))"),
    "nested steps": Per("seen.push(await step('a', () => step('b', () => tools.slow(%d))));", "seen.append(await step('a', step, 'b', tools.slow, %d))"),
    "look-up": Per("seen.push(Object.keys(tools).length + %d);", "seen.append(len(list(tools)) + %d)"),
    "identity": Per("seen.push(new Error('%d').stack);", "seen.append([repr(object()), {str(n) for n in range(%d)}, gc.get_count()])", "seen.append([repr(lambda: 1), {str(n) for n in range(%d)}, hash('a')])"),
    "garbage": Per("for (let i = 0; i < 1e4; i++) ({i, n: [%d]});", "for i in range(300):\n    Cycle(%d)"),
    "microtasks": Per("for (let i = 0; i < %d; i++) { await null; seen.push(i) }", "for i in range(%d):\n    await asyncio.sleep(0)\n    seen.append(i)"),
    "error": Per("if (%d > 4) throw new Error('thrown');", "if %d > 4:\n    raise ValueError('thrown')"),
}  # fmt: skip
HEAD = Per(
    "const seen: any[] = [];",
    """
    import asyncio, datetime, gc, hashlib, os, random, time, uuid
    seen = []
    class Cycle:
        def __init__(self, n):
            self.me, self.n = self, n
        def __del__(self):
            seen.append(self.n)
    """,
    """
    import asyncio, datetime, hashlib, os, random, time
    seen = []
    class Cycle:
        def __init__(self, n):
            self.me, self.n = self, n
    """,
)

leaves = st.tuples(st.sampled_from(sorted(LEAVES)), st.integers(0, 5))
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from(["together", "race", "guarded"]), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)


def in_typescript(tree: Any, engine: Engine = JS) -> str:
    kind, rest = tree
    if kind in LEAVES:
        return said(LEAVES[kind], engine) % rest
    parts = [in_typescript(part, engine) for part in rest]
    if kind == "guarded":
        return f"try {{ {' '.join(parts)} }} catch (e) {{ seen.push(`${{e}}`) }}"
    branches = ", ".join(f"(async () => {{ {part} }})()" for part in parts)
    return f"await Promise.{'all' if kind == 'together' else 'race'}([{branches}]);"


def in_python(tree: Any, engine: Engine = PY) -> str:
    kind, rest = tree
    if kind in LEAVES:
        return said(LEAVES[kind], engine) % rest
    parts = [in_python(part, engine) for part in rest]
    if kind == "guarded":
        return f"try:\n{indented(parts)}\nexcept Exception as e:\n    seen.append(repr(e))"
    branches = [f"async def branch{n}():\n{indented([part])}" for n, part in enumerate(parts)]
    if engine == MONTY:  # which has no races
        return "\n".join([*branches, f"await asyncio.gather({', '.join(f'branch{n}()' for n in range(len(parts)))})"])
    tasks = ", ".join(f"asyncio.ensure_future(branch{n}())" for n in range(len(rest)))
    wait = f"asyncio.gather({tasks})" if kind == "together" else f"asyncio.wait([{tasks}], return_when='FIRST_COMPLETED')"
    return "\n".join([*branches, f"await {wait}"])


def indented(parts: Any) -> str:
    return textwrap.indent("\n".join(parts), "    ")


def program(engine: Engine, parts: list[Any]) -> str:
    render, end = (in_python, "seen") if engine.language == "python" else (in_typescript, "return seen;")
    return "\n".join([textwrap.dedent(said(HEAD, engine)), *(render(part, engine) for part in parts), end])


@pytest.mark.integration
@pytest.mark.parametrize("engine", ENGINES, ids=str)
@settings(
    max_examples=REPLAYS, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given_examples(parts=st.lists(trees, min_size=1, max_size=6), seed=st.integers(0, 2**32))
async def test_whatever_a_program_does_it_replays_elsewhere(
    own: Gloveport, elsewhere: Elsewhere, engine: Engine, parts: list[Any], seed: int
) -> None:
    chance.seed(seed)
    outcome = await own.run(program(engine, parts), language=engine.language, engine=engine.name)
    assert outcome.error is None or outcome.error.message == "thrown", outcome.error
    await assert_replays(own, outcome.run, elsewhere)


# What does differ is found, and told.


@pytest.mark.integration
async def test_a_program_that_reads_the_clock_behind_our_back_is_told_the_first_difference(
    own: Gloveport, elsewhere: Elsewhere
) -> None:
    code = "import ctypes\nprint('before')\nnow = ctypes.create_string_buffer(16)\nctypes.CDLL(None).clock_gettime(0, now)\nprint(now.raw.hex())"
    outcome = await own.run(code, language="python")
    recording = await own.recording(outcome.run)
    found = await elsewhere.replay(recording)
    assert found is not None
    assert found.startswith("frame 1: recorded")
    assert outcome.logs[1].text in found


async def replay_with_another_reply(own: Gloveport, run: str) -> Divergence:
    """The first difference when the program's call returns 2 instead of 1."""
    recording = await own.recording(run)
    steps = [
        (sender, step.replace(b"true,1]", b"true,2]") if sender == "host" else step) for sender, step in recording.steps
    ]
    found = await own.replay(replace(recording, steps=tuple(steps)))
    assert found is not None
    return found


@pytest.mark.integration
async def test_a_program_that_is_told_something_else_diverges_where_it_shows(own: Gloveport) -> None:
    outcome = await own.run("const x = await tools.slow(1); console.log(x); return x")
    found = await replay_with_another_reply(own, outcome.run)
    assert found.fatal
    assert found.at == 2
    assert (found.recorded or b"").startswith(b'["done","value",1')
    assert (found.replayed or b"").startswith(b'["done","value",2')
    assert "frame 2" in str(found)


@pytest.mark.integration
async def test_a_log_line_that_differs_is_reported_and_has_no_meaning(own: Gloveport) -> None:
    outcome = await own.run("console.log(await tools.slow(1)); return 5")
    found = await replay_with_another_reply(own, outcome.run)
    assert not found.fatal
    assert found.at == 1


@pytest.mark.integration
async def test_a_run_without_a_recording_is_an_error(port: Gloveport, own: Gloveport) -> None:
    with pytest.raises(OptionError, match="not recorded here"):
        await port.replay("x")
    with pytest.raises(OptionError, match="there is no run 'x'"):
        await own.replay("x")


@pytest.mark.integration
async def test_a_run_that_exchanges_too_much_is_not_recorded_and_says_so(tmp_path: Path) -> None:
    async def much() -> str:
        """Much text."""
        return "x" * 8_000_000

    async with Gloveport(tools=[much], spare=1, store=tmp_path / "store.sqlite") as port:
        for times, is_kept in ((1, True), (10, False)):
            outcome = await port.run(f"let n = 0; for (let i = 0; i < {times}; i++) n += (await tools.much()).length; n")
            assert outcome.value == times * 8_000_000
            assert any("run-too-large-to-resume" in warning for warning in outcome.warnings) != is_kept
            if is_kept:
                assert await port.replay(outcome.run) is None
            else:
                with pytest.raises(OptionError, match="no recording"):
                    await port.replay(outcome.run)
