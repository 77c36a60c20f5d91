"""The modules of Node that programs import, in every engine that has some."""

from pathlib import Path

import pytest

from gloveport import Gloveport, Outcome
from tests.conftest import TOOLS

pytestmark = pytest.mark.integration

# the program and its result in Deno, as Node gives it
PROGRAMS: dict[str, tuple[str, object]] = {
    "path": (
        "import path, { join } from 'node:path'; import * as posix from 'path/posix';"
        " [join('a', '..', 'b'), path.resolve('x'), posix.extname('a.ts'), path === require('path')]",
        ["b", "/workspace/x", ".ts", True],
    ),
    "url": (
        "import url from 'url'; [url.fileURLToPath('file:///a/b'), url.parse('http://a/b?c=1').query]",
        ["/a/b", "c=1"],
    ),
    "querystring": ("require('querystring').stringify({a: [1, 2]})", "a=1&a=2"),
    "string_decoder": (
        "import { StringDecoder } from 'string_decoder'; import { Buffer } from 'buffer';"
        "const d = new StringDecoder('utf8'); d.write(Buffer.from([0xc3])) + d.write(Buffer.from([0xa9]))",
        "é",
    ),
    "util": (
        "import util from 'util'; [util.format('%s %d', 'a', 3), util.inspect({a: {b: {c: {}}}}, {depth: 0}),"
        " await util.promisify((a, back) => back(null, a + 1))(2), util.types.isDate(new Date())]",
        ["a 3", "{ a: [Object] }", 3, True],
    ),
    "assert": (
        "import assert from 'node:assert/strict'; try { assert.deepEqual({a: 1}, {a: 2}) } catch (e) { e.code }",
        None,
    ),
    "events": (
        "import { EventEmitter, once } from 'events'; const e = new EventEmitter(); setTimeout(() => e.emit('x', 5), 10);"
        " await once(e, 'x')",
        [5],
    ),
    "stream": (
        "import { Readable, Transform } from 'stream'; import { pipeline } from 'stream/promises'; const out = [];"
        "async function* rows() { for (let i = 0; i < 3; i++) yield await tools.add({a: i, b: 1}) }"
        "const twice = new Transform({objectMode: true, transform(x, _, back) {"
        " process.nextTick(() => tools.add({a: x, b: x}).then((sum) => back(null, sum))) }});"
        "await pipeline(Readable.from(rows()), twice, async (all) => { for await (const x of all) out.push(x) }); out",
        [2, 4, 6],
    ),
    "crypto": (
        "import crypto from 'crypto'; [crypto.createHash('sha256').update('x').digest('hex').slice(0, 8),"
        " crypto.createHmac('sha1', 'k').update('x').digest('base64'), crypto.randomBytes(4).length,"
        " crypto.randomUUID().length, crypto.generateKeyPairSync]",
        ["2d711642", "ywATH87GAqj8hEE6KnAVTYwGoNI=", 4, 36, None],
    ),
    "zlib": ("import zlib from 'zlib'; [zlib.gunzipSync(zlib.gzipSync('hi')).toString(), zlib.gzip]", ["hi", None]),
    "process": (
        "import process, { env } from 'node:process'; [process.platform, Object.keys(env), process === globalThis.process]",
        ["linux", [], True],
    ),
    "timers": (
        "import { setTimeout as sleep } from 'timers/promises'; const before = Date.now(); const given = await sleep(50, 'x');"
        " [given, Date.now() - before >= 50]",
        ["x", True],
    ),
    "async_hooks": (
        "import { AsyncLocalStorage } from 'async_hooks'; const s = new AsyncLocalStorage();"
        " await s.run(3, async () => { await tools.add({a: 1, b: 1}); return s.getStore() })",
        3,
    ),
    "punycode": ("require('punycode').encode('mañana')", "maana-pta"),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_modules_of_node_work_as_in_node(name: str, port: Gloveport) -> None:
    code, expected = PROGRAMS[name]
    outcome = await port.run(code)
    assert outcome.status == "completed", outcome
    assert outcome.value == expected


@pytest.mark.parametrize("engine", ["deno", "quickjs"])
async def test_every_javascript_engine_has_the_modules_of_the_prelude(engine: str, port: Gloveport) -> None:
    code = "import { env } from 'process'; const t = await import('node:timers'); [Object.keys(env), typeof t.setTimeout]"
    outcome = await port.run(code, engine=engine)
    assert (outcome.status, outcome.value) == ("completed", [[], "function"]), outcome


@pytest.mark.parametrize("engine", ["deno", "quickjs"])
async def test_a_module_without_the_wanted_export_says_so_at_the_program(engine: str, port: Gloveport) -> None:
    outcome = await port.run("import { nope } from 'process';\nnope", engine=engine)
    assert outcome.error is not None
    assert "`process` has no export `nope`; it has: argv" in outcome.error.message or "env" in outcome.error.message


async def test_modules_leave_nothing_behind_that_a_guest_may_not_have(port: Gloveport) -> None:
    code = (
        "import 'stream'; import 'crypto'; import 'zlib'; import 'util';"
        "[typeof Deno, typeof Atomics, typeof SharedArrayBuffer, typeof require]"
    )
    outcome = await port.run(code)
    assert outcome.value == ["undefined"] * 4, outcome


async def test_a_stream_that_fails_with_nobody_listening_ends_the_run_with_its_error(port: Gloveport) -> None:
    code = "import { Readable } from 'stream'; new Readable({read() {}}).destroy(new Error('boom')); await new Promise(() => {})"
    outcome = await port.run(code)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == ("program-failed", "boom")


async def test_a_run_with_modules_replays_to_the_same_frames(tmp_path: Path) -> None:
    code = (
        "import crypto from 'crypto'; import { Readable } from 'stream'; const seen = [];"
        "for await (const x of Readable.from([1, 2, 3])) seen.push(await tools.add({a: x, b: crypto.randomInt(1000)}));"
        "console.log(crypto.randomBytes(8).toString('hex'), crypto.randomUUID()); seen"
    )
    async with Gloveport(tools=TOOLS, store=tmp_path / "store.db") as port:
        outcomes: list[Outcome] = [await port.run(code) for _ in range(2)]
        assert all(outcome.status == "completed" for outcome in outcomes), outcomes
        assert outcomes[0].logs != outcomes[1].logs
        for outcome in outcomes:
            assert await port.replay(outcome.run) is None


async def test_an_unapproved_package_tells_the_person_the_command_and_the_agent_to_ask(port: Gloveport) -> None:
    outcome = await port.run("import pad from 'left-pad';\npad")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.line, outcome.error.column) == ("import-refused", 1, 17)
    assert outcome.error.setting == "gloveport packages add npm:left-pad"
    assert "ask the user" in (outcome.error.hint or "")
    assert "gloveport" not in (outcome.error.hint or "")
