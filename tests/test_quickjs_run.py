"""What programs find in the engine `quickjs`, and what they don't."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport import Gloveport, OptionError
from gloveport.bridge import hints
from gloveport.errors import SandboxError
from gloveport.sandbox.engines import registry
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.quickjs import engine as quickjs
from gloveport.sandbox.engines.quickjs.subset import MISSING_GLOBALS
from gloveport.surfaces.agents.tools import AgentTools
from tests.conftest import TOOLS
from tests.sandbox.jail.stage import play
from tests.sandbox.test_cpython_jail import SURROUNDINGS
from tests.test_guest import EVALS, GONE, look_for


@pytest.mark.integration
async def test_a_port_can_prefer_engines_for_runs_that_name_none() -> None:
    async with Gloveport(engines=["quickjs", "monty"], spare=0) as dense:
        assert (await dense.run("typeof URL")).value == "undefined"
        assert (await dense.run("typeof URL", engine="deno")).value == "function"
        told = await dense.run("def numbers():\n    yield 1", language="python")
        assert told.error is not None
        assert told.error.code == "engine-lacks"
        assert told.error.setting == "run it in an engine that has it: engine=…"
        answer = await AgentTools(dense).call("execute", {"code": "new URL('https://example.com')"})
        assert "the engine `deno` has it; where you can name no engine, do without it" in answer.text
        assert not re.search(r"--engine|engine=", answer.text), "an agent can pass neither"
    with pytest.raises(OptionError, match="quickjs"):
        Gloveport(engines=["quickjs"], allow_wasm=True)


@pytest.mark.integration
def test_settings_can_prefer_engines(tmp_path: Path) -> None:
    (tmp_path / "gloveport.toml").write_text('[sandbox]\nengines = ["quickjs"]\n')
    with Gloveport(config=tmp_path / "gloveport.toml", spare=0) as dense:
        assert dense.run_sync("typeof URL").value == "undefined"


async def value_of(port: Gloveport, code: str, **options: Any) -> Any:
    outcome = await port.run(code, engine="quickjs", **options)
    assert outcome.error is None, outcome.error
    return outcome.value


SAME = {
    "text to bytes": "['', 'hé', '😀', '\\ud800x', '\\u07ff\\u0800\\uffff'].map((t) => new TextEncoder().encode(t))",
    "text into bytes": "const b = new Uint8Array(4); const r = new TextEncoder().encodeInto('aé😀', b); return [r, b]",
    "bytes to text": "[[0x68, 0xc3, 0xa9], [0xf0, 0x9f, 0x98, 0x80], [0xef, 0xbb, 0xbf, 0x61], [0xc3], [0xff, 0x61], [0xe2, 0x82, 0x61], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc0, 0x80]].map((b) => new TextDecoder().decode(new Uint8Array(b)))",
    "bytes to text, kept": "new TextDecoder('utf8', {ignoreBOM: true}).decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])).length",
    "bytes to text in pieces": "const d = new TextDecoder(); const out: string[] = []; for (const b of [0xef, 0xbb, 0xbf, 0xf0, 0x9f, 0x98, 0x80, 0xe2, 0x82]) out.push(d.decode(new Uint8Array([b]), {stream: true})); out.push(d.decode()); return out",
    "bytes that are no text": "try { new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([0xff])) } catch (e: any) { return e.name }",
    "clones": "const a: any = {d: new Date(5), m: new Map([[1, {x: 1n}]]), s: new Set(['a']), b: new Uint8Array([1, 2]), u: undefined, n: [1, , 3].length}; a.self = a; const c = structuredClone(a); return [c !== a, c.self === c, c.d.getTime(), c.m.get(1), [...c.s], c.b, 'u' in c, c.n]",
    "clones of shared bytes": "const buffer = new ArrayBuffer(4); const c = structuredClone([new Uint8Array(buffer, 1, 2), new DataView(buffer), buffer]); return [c[0].buffer === c[2], c[1].buffer === c[2], c[0].byteOffset, c[0].length]",
    "clones of errors and patterns": "const e = structuredClone(new TypeError('x', {cause: 1})); const r = structuredClone(/a/gi); return [e instanceof TypeError, e.message, e.cause, r.source, r.flags]",
    "clones of what can't be": "return [() => 1, Symbol('a')].map((x) => { try { structuredClone(x); return 'cloned' } catch (e: any) { return e.name } })",
    "base64": "[btoa('hé'), atob('aOk='), new Uint8Array([1, 2]).toBase64(), new Uint8Array([255]).toHex()]",
    "dates": "[new Date(0).toISOString(), new Date(2020, 5, 1).getTime(), Date.UTC(2020, 1), String(new Date(0)), new Date('2020-01-01').toJSON(), String(new Date(NaN))]",
    "numbers": "[0.1 + 0.2, 1e21, 1 / 3, (255).toString(16), (1.005).toFixed(2), (123.456).toPrecision(4), parseInt('12px'), 2n ** 70n, -0]",
    "strings": "['ä'.normalize('NFD').length, 'abc'.at(-1), 'a-b'.replaceAll('-', '+'), 'ß'.toUpperCase(), [...'a😀'].length, 'x'.padStart(3, 'ab'), 'İ'.toLowerCase().length]",
    "patterns": "['2024-01-02'.match(/(?<y>\\d+)-(?<m>\\d+)/)!.groups!.m, 'aBc'.replace(/b/i, (m) => m + m), [...'a1b2'.matchAll(/\\d/g)].map((m) => m[0]), /\\p{Lu}/u.test('É'), /(?<=a)b/.test('ab'), 'x y'.split(/\\s/)]",
    "arrays": "[[3, 1, 2].toSorted(), [1, [2, [3]]].flat(Infinity), Object.groupBy([1, 2, 3], (x) => x % 2 ? 'odd' : 'even'), [1, 2, 3].findLast((x) => x < 3), Array.from({length: 3}, (_, i) => i), [5, 1, 10].sort(), [1, 2].with(0, 9)]",
    "sets and maps": "[[...new Set([1, 2]).union(new Set([3]))], [...Map.groupBy([1, 2], (x) => x % 2).keys()], new Map([[NaN, 1]]).get(NaN)]",
    "iterators": "[[1, 2, 3].values().map((x) => x * 2).toArray(), Iterator.from([1, 2, 3]).drop(1).take(1).toArray()]",
    "promises": "[await Promise.allSettled([1, Promise.reject(2)]), await Promise.any([Promise.reject(1), 2]), await Promise.race([1, 2]), await Promise.try(() => 3), await Array.fromAsync([Promise.resolve(4)])]",
    "the order of microtasks": "const out: any[] = []; queueMicrotask(() => out.push(1)); Promise.resolve().then(() => out.push(2)); setTimeout(() => out.push(4)); await null; out.push(3); await new Promise((r) => setTimeout(r, 5)); return out",
    "json": "[JSON.stringify({a: [1, undefined, () => 1], b: undefined, c: new Date(0)}), JSON.parse('[1, {\"a\": null}]'), JSON.stringify({a: 1, b: [2]}, null, 2)]",
    "classes": "class A { static #n = 0; static { A.#n = 5 } #x = 1; has(o: any) { return #x in o } get n() { return A.#n } }\nreturn [new A().has(new A()), new A().has({}), new A().n]",
    "errors": "try { null!.x } catch (e: any) { return [e.constructor.name, e instanceof TypeError, typeof e.stack, e.stack.includes('program.ts:1:')] }",
    "errors with causes": "return new Error('a', {cause: new RangeError('b')})",
    "what was aggregated": "try { await Promise.any([Promise.reject(1)]) } catch (e: any) { return [e.name, e.errors] }",
    "names of functions": "const f = () => 1; function g() {}\nreturn [f.name, g.name, (class K {}).name, g.length]",
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
async def test_what_both_engines_have_is_the_same(port: Gloveport, name: str) -> None:
    deno = await port.run(SAME[name], engine="deno")
    assert deno.error is None, deno.error
    assert await value_of(port, SAME[name]) == deno.value


LETTERS = st.text(alphabet=st.sampled_from([*map(chr, range(0x20, 0x7F)), *"áàâäãåéèêëíìîïóòôöõúùûüçñýÿÁÀÂÄÃÅÉÈÊËÍÌÎÏÓÒÔÖÕÚÙÛÜÇÑčšžěřůőűăęłąāēż\t\x01".replace("ł", "")]), max_size=8)  # fmt: skip


async def test_texts_are_put_in_the_order_that_deno_puts_them_in(port: Gloveport) -> None:
    @settings(max_examples=300, derandomize=True, deadline=None)
    @given(texts=LETTERS)
    def gather(texts: str) -> None:
        found.append(texts)

    found: list[str] = [
        "",
        "a",
        "A",
        "b",
        "B",
        "résumé",
        "resume",
        "Resume",
        "résume",
        "co-op",
        "coop",
        "co op",
        "Z",
        "z10",
        "z2",
    ]
    gather()
    code = "return input.map((a, i) => [a.localeCompare(input[(i * 7 + 1) % input.length]), a.localeCompare(input[(i + 1) % input.length]), a.localeCompare(a.toUpperCase())])"
    deno = await port.run(code, engine="deno", input=found)
    assert await value_of(port, code, input=found) == deno.value
    code = "return [...input].sort((a, b) => a.localeCompare(b) || (a < b ? -1 : 1))"
    assert await value_of(port, code, input=found) == (await port.run(code, engine="deno", input=found)).value


@pytest.mark.parametrize(
    "call", ["'z'.localeCompare('ж')", "'a'.localeCompare('b', 'sv')", "'a'.localeCompare('b', 'en', {numeric: true})"]
)
async def test_an_order_that_is_not_known_is_refused(port: Gloveport, call: str) -> None:
    outcome = await port.run(call, engine="quickjs")
    assert outcome.error is not None
    assert outcome.error.code == "engine-lacks"
    assert outcome.error.line == 1


SHOWN = [
    "'a', 1, true, null, undefined, 2n, -0, Symbol('s')",
    "{a: 1, 'b-c': 'x', [Symbol('k')]: [1, 'two', {three: 3}]}",
    "['a', \"it's\", 'say \"hi\"']",
    "new Map<any, any>([['a', {b: 1}], [1, []]]), new Set([1, 'x'])",
    "new Date(0), /a/g, [undefined, null], {}, []",
    "class A { x = 1 }, new (class B { y = 2 })(), function f() {}, () => 1, async () => 1",
    "'%s is %d years and %i, %f, %o %%', 'Bob', 42.5, 42.9, 1.5, {a: 1}, 'rest'",
    "Object.create(null), new Uint8Array([1, 2]), [1, 2, 3].map(String)",
    "{get a() { return 1 }, set b(v) {}, f() {}}",
]


@pytest.mark.parametrize("items", SHOWN)
async def test_the_console_shows_what_denos_shows(port: Gloveport, items: str) -> None:
    deno = await port.run(f"console.log({items})", engine="deno")
    small = await port.run(f"console.log({items})", engine="quickjs")
    assert [line.text for line in small.logs] == [line.text for line in deno.logs]


async def test_the_console_shows_nested_and_circular_values(port: Gloveport) -> None:
    code = """
    const a: any = {deep: {b: {c: {d: {e: {f: 1}}}}}, list: Array.from({length: 150}, (_, i) => i)};
    a.self = a;
    console.log(a); console.table([{x: 1}, {x: 2, y: "z"}]); console.group("in"); console.log("side"); console.groupEnd();
    console.count(); console.count(); console.assert(1 > 2, "no"); console.dir({q: 1});
    """
    lines = [line.text for line in (await port.run(code, engine="quickjs")).logs]
    assert "[Circular" in lines[0]
    assert "... 50 more items" in lines[0]
    assert "│ (idx) │" in lines[1]
    assert lines[2:] == ["in", "  side", "default: 1", "default: 2", "Assertion failed: no", "{ q: 1 }"]


async def test_what_leads_out_or_is_not_there_is_not_there(port: Gloveport) -> None:
    missing = [*GONE, "InternalError", "Intl", "$$read", "$$entry", "$$allowEval"]
    assert await value_of(port, look_for([*missing, "TextEncoder"])) == ["TextEncoder"]


async def test_a_name_that_only_the_run_shows_is_told_with_the_engine_that_has_it(port: Gloveport) -> None:
    outcome = await port.run("const g: any = globalThis; return new g['U' + 'RL']('https://example.com')", engine="quickjs")
    assert outcome.error is not None
    assert outcome.error.type == "TypeError"


@pytest.mark.parametrize(
    "code", ["(1).constructor.prototype['toLocale' + 'String'].call(1)", "new Date()['toLocale' + 'DateString']()"]
)
async def test_formatting_by_locale_is_refused_rather_than_wrong(port: Gloveport, code: str) -> None:
    outcome = await port.run(f"return {code}", engine="quickjs")
    assert outcome.error is not None
    assert "the engine `quickjs` has no " in outcome.error.message
    assert "`deno`" in (outcome.error.hint or "")


ESCAPES = [
    "Reflect.construct(Function, ['return 2'])()",
    "(function* () {}).constructor('yield 2')().next().value",
    "(async function* () {}).constructor('yield 2')()",
    "Object.getPrototypeOf(async () => {}).constructor('return 2')()",
    "class F extends Function {}; new F('return 2')()",
    "[].map.constructor('return 2')()",
    "eval?.('1 + 1')",
    "Function.prototype.constructor.call(null, 'return 2')()",
]


@pytest.mark.parametrize("code", [*EVALS, *ESCAPES])
async def test_code_from_strings_is_off(port: Gloveport, code: str) -> None:
    head, _, last = code.rpartition("; ")
    outcome = await port.run(f"{head}\nreturn {last}", engine="quickjs")
    assert outcome.error is not None
    assert outcome.error.type == "EvalError", outcome.error
    assert "allow_eval" in (outcome.error.setting or "")


@pytest.mark.integration
async def test_code_from_strings_can_be_allowed() -> None:
    async with Gloveport(allow_eval=True, spare=0) as own:
        for code in EVALS:
            assert (await own.run(f"return await ({code})", engine="quickjs")).value == 2
        inside = "const hidden = 1; return [eval('hidden + 1'), (0, eval)('typeof hidden'), typeof new Function('return $$read')]"
        assert (await own.run(inside, engine="quickjs")).value == [2, "undefined", "function"]


@pytest.mark.integration
async def test_webassembly_is_no_option_of_this_engine() -> None:
    async with Gloveport(allow_wasm=True, spare=0) as own:
        with pytest.raises(OptionError, match="quickjs has no WebAssembly"):
            await own.run("1", engine="quickjs")


async def test_a_hijacked_language_does_not_reach_the_prelude(port: Gloveport) -> None:
    code = """
    const real = {log: console.log};
    for (const kind of [Object, Array, String, Number, Map, Set, Promise, RegExp, Error, JSON, Reflect, Symbol, Function.prototype,
      Object.prototype, Array.prototype, String.prototype, Map.prototype, Set.prototype, Promise.prototype, RegExp.prototype, Error.prototype]) {
      for (const name of Object.getOwnPropertyNames(kind)) {
        if (["prototype", "constructor", "__proto__", "getOwnPropertyNames", "length", "name"].includes(name)) continue;
        try { Object.defineProperty(kind, name, {value: () => { throw new Error("hijacked") }, configurable: true, writable: true}) } catch {}
      }
    }
    real.log("still", {a: [1]});
    return {sum: await tools.add(1, 2)};
    """
    outcome = await port.run(code, engine="quickjs")
    assert outcome.error is None or outcome.error.message == "hijacked", outcome.error
    code = """
    Object.prototype.toJSON = () => 'planted'; Array.prototype.toJSON = () => 'planted'; String.prototype.toJSON = () => 'x';
    JSON.stringify = () => '["done","value",666,{}]'; JSON.parse = () => 7; Array.prototype.push = () => 0; Array.prototype.map = null;
    Map.prototype.get = Map.prototype.set = Map.prototype.forEach = () => 1; RegExp.prototype.exec = () => null;
    Object.defineProperty(Object.prototype, 'get', {get() { return undefined }, configurable: true});
    String.prototype.slice = () => 'cut'; Promise.prototype.then = function () { return this };
    Error.prepareStackTrace = () => 'mine'; Error.captureStackTrace = () => { throw 1 }; Reflect.apply = () => 5;
    globalThis.undefined; console.log('a', [1]);
    return {sum: 3};
    """
    outcome = await port.run(code, engine="quickjs")
    assert outcome.value == {"sum": 3}, outcome.error
    assert outcome.logs[0].text == "a [ 1 ]"


async def test_an_error_at_the_memory_limit_names_its_line_and_can_be_caught(port: Gloveport) -> None:
    code = "const a = [];\nwhile (true) {\n  a.push(new Uint8Array(1e6));\n}"
    outcome = await port.run(code, engine="quickjs", limits={"memory_mb": 32})
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.line) == ("memory-limit", 3)
    code = "let n = 0; try { const a = []; while (true) { a.push(new Uint8Array(1e6)); n++ } } catch (e) { return [n > 20, n < 40] }"
    assert await value_of(port, code, limits={"memory_mb": 32}) == [True, True]


async def test_a_throw_in_a_microtask_ends_the_run(port: Gloveport) -> None:
    outcome = await port.run(
        "queueMicrotask(() => { throw new Error('in between') }); await tools.add(1, 2)", engine="quickjs"
    )
    assert outcome.error is not None
    assert outcome.error.message == "in between"


@pytest.mark.integration
async def test_the_engine_runs_where_there_is_no_deno(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise SandboxError("the engine `deno` is not installed", hint="pip install deno")

    monkeypatch.setattr(DENO, "version", missing)
    registry.default_engine.cache_clear()
    try:
        async with Gloveport(tools=TOOLS, spare=0) as own:
            assert (await own.run("const a: number = await tools.add(1, 2); a")).value == 3
    finally:
        registry.default_engine.cache_clear()


def test_a_missing_or_foreign_binding_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "_quickjs.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "_quickjs", raising=False)
    with pytest.raises(SandboxError, match="not the one of quickjs-ng"):
        quickjs.find_quickjs()
    monkeypatch.setattr(quickjs, "DISTRIBUTION", "quickjs-ng-that-nobody-has")
    with pytest.raises(SandboxError, match="not installed") as caught:
        quickjs.find_quickjs()
    assert caught.value.hint == "pip install 'gloveport[quickjs]'"


@pytest.mark.integration
@pytest.mark.parametrize(("user", "without", "strength"), SURROUNDINGS)
async def test_the_engine_runs_in_a_jail_of_either_strength(user: str, without: list[str], strength: str) -> None:
    plan = {"code": "const n: number = 20;\nn + 1", "language": "typescript", "engine": "quickjs", "minimum": strength}
    assert await play("program", plan, user=user, without=without) == {"value": 21, "error": None}


@pytest.mark.integration
async def test_types_are_checked_before_they_are_erased() -> None:
    async with Gloveport(tools=TOOLS, check_types=True, spare=0) as own:
        outcome = await own.run("const a = 1;\nconst n: string = await tools.add({ a, b: 2 });\nn", engine="quickjs")
        assert outcome.value == 3
        assert any(
            "line 2, column 7: Type 'number' is not assignable to type 'string'" in text for text in outcome.warnings
        )


def test_the_hints_at_run_time_name_nothing_that_prepare_does_not() -> None:
    assert hints._ONLY_DENO <= MISSING_GLOBALS
