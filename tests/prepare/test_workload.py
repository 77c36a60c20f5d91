"""Which programs suit the interpreter, by the look of their text: those that compute little, and come to the same in it."""

import pathlib
import tomllib

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import prepare
from gloveport.prepare.typescript.workload import MAX_LOOKED_AT
from gloveport.sandbox.engines.quickjs.subset import SUBSET
from gloveport.types import Importable

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"


def is_light(code: str) -> bool:
    return prepare(code, lighter=SUBSET, importable=Importable(builtins=frozenset({"path"}))).is_light


LIGHT = {
    "one call": "const w = await tools.get_weather({city: 'Oslo'}); w.celsius - 1",
    "parallel calls": "(await Promise.all(['a', 'b'].map((city) => tools.get_weather({city})))).map((w) => w.sky)",
    "a call in each turn of a loop": "let page = 1; while (page) { const found = await tools.list({page}); page = found.next }",
    "a call in each turn of nested loops": "for (const a of [1, 2]) for (let i = 0; ; i++) { if (!await tools.more({a, i})) break }",
    "a loop over a result": "let sum = 0; for (const o of await tools.orders()) sum += o.total; sum",
    "a loop up to a length": "let sum = 0; for (let i = 0; i < rows.length; i++) sum += rows[i].total; sum",
    "a loop over the keys": "for (const key in totals) console.log(key, totals[key])",
    "passes one after another": "orders.filter((o) => o.open).map((o) => o.total).reduce((a, b) => a + b, 0)",
    "a pass over a part of the element": "orders.flatMap((order) => order.items.map((item) => item.name))",
    "a loop over a part of the element": "for (const order of orders) { for (const item of order.items) console.log(item) }",
    "a loop over the values of the element": "for (const row of rows) console.log(Object.values(row).join())",
    "a spread element": "orders.map((order) => ({...order, open: true}))",
    "a spread entry": "Object.entries(totals).map(([city, total]) => ({city, ...total}))",
    "a list of a small size": "Array.from({length: 40}, (_, i) => i).concat(Array(3).fill(0)); 'x'.repeat(20)",
    "a copy of a list": "Array.from(rows).toSorted((a, b) => b.total - a.total)",
    "a sort by name without a comparison": "names.sort()",
    "own functions": "const label = (o) => `${o.id}`; function total(o) { return o.total } rows.map(label).concat(rows.map((o) => total(o)))",
    "a function that makes a pass, called once": "const sum = (xs: number[]) => xs.reduce((a, b) => a + b, 0); sum(await tools.numbers())",
    "main": "async function main() { for (const o of await tools.orders()) console.log(o.id) }\nmain()",
    "a lone arrow": "async () => (await tools.orders()).map((o) => o.id)",
    "a helper that tries again": "async function retry<T>(f: () => Promise<T>) { for (;;) { try { return await f() } catch { } } }\nawait retry(() => tools.a())",
    "callbacks of promises": "tools.a().then((a) => tools.b({id: a.id})).then((b) => b.rows.map((row) => row.id))",
    "a class": "class Report { rows: string[] = []; add(line: string) { this.rows.push(line) } }\nconst r = new Report(); r.add('a'); r.rows",
    "types": "interface Order { total: number }\nconst orders = (await tools.orders()) as Order[]; orders[0]!.total",
    "a part of a result handed on": "const user = await tools.user(); await tools.notify({to: user.email})",
    "exact arithmetic": "Math.round(1.5) + Math.max(...[1, 2]) + Math.floor(total / 2)",
    "texts": "name.padEnd(10) + name.toUpperCase().split(',')[0].trim() + (5).toFixed(2)",
    "a word in a comment": "// the steps: fetch, then process\nconst state = 1; tools.a()".replace("state", "status"),
}  # fmt: skip
HEAVY = {
    "an endless loop": "while (true) {}",
    "a counted loop": "let n = 0; for (let i = 0; i < 1e6; i++) n += i",
    "a loop up to a variable": "for (let i = 0; i < n; i++) total += i",
    "a loop that counts down": "let n = 10; do { n-- } while (n > 0)",
    "nested loops": "for (const a of rows) for (const b of rows) if (a.id === b.id) console.log(a)",
    "a pass in a pass": "rows.map((a) => others.filter((b) => b.id === a.id))",
    "a pass over two elements": "for (const a of rows) { for (const b of a.items) { for (const c of a.items) console.log(b, c) } }",
    "a search in each turn": "rows.filter((row) => ids.includes(row.id))",
    "a copy in each turn": "rows.reduce((all, row) => ({...all, [row.id]: row}), {})",
    "a longer list in each turn": "rows.reduce((all, row) => [...all, row], [])",
    "keys in each turn": "for (const row of rows) console.log(Object.keys(totals).length)",
    "a function with a pass in a pass": "const find = (id) => others.find((o) => o.id === id); rows.map((row) => find(row.id))",
    "a function with a pass as a callback": "const sum = (row) => others.reduce((a, b) => a + b, row); rows.map(sum)",
    "a function that calls one with a pass": "const a = () => xs.map((x) => x); const b = () => a(); for (const y of ys) b()",
    "a method with a pass in a pass": "const o = { find(id) { return xs.find((x) => x.id === id) } }; ys.map((y) => o.find(y))",
    "recursion": "function walk(node) { return node.next ? walk(node.next) : node } walk(tree)",
    "recursion over two functions": "const a = (n) => n && b(n - 1); const b = (n) => n && a(n - 1); a(5)",
    "recursion of a typed function": "const f: (n: number) => number = (n) => n < 2 ? n : f(n - 1) + f(n - 2); f(30)",
    "recursion of a method": "class A { m(n) { return n ? this.m(n - 1) : 0 } } new A().m(9)",
    "a generator": "function* ids() { yield 1 } [...ids()]",
    "a regular expression": "text.match(/a+/g)",
    "one made of a text": "new RegExp('a+').test(text)",
    "a long list": "Array.from({length: 30000}, (_, i) => i)",
    "a list of a size that is computed": "Array.from({length: n * n}, (_, i) => i)",
    "a list by its size": "new Array(n).fill(0)",
    "a long text": "'x'.repeat(100000)",
    "a whole result handed on": "const rows = await tools.load(); await tools.save({rows})",
    "a whole result handed on in a list": "const a = await tools.load(); await tools.save([...a])",
    "a whole result emitted": "const rows: Row[] = await tools.load(); emit(rows)",
    "bytes": "new Uint8Array(10)",
    "big integers": "BigInt(5)",
    "powers": "2 ** n",
    "what differs in the last digit": "Math.sin(1)",
    "functions of Math by another name": "const { pow } = Math; pow(2, 3)",
    "digits of another base": "Math.random().toString(36)",
    "an order by comparison": "rows.sort((a, b) => a.name > b.name ? 1 : -1)",
    "an order by a block": "rows.sort((a, b) => { return a - b })",
    "an order by a named function": "rows.sort(byName)",
    "an order by locale": "rows.sort((a, b) => a.name.localeCompare(b.name))",
    "the platform": "new URL('http://a').host",
    "formatting by locale": "(5).toLocaleString()",
    "the global scope": "globalThis['URL']",
    "code from text": "eval('1')",
    "a step": "await step('load', () => tools.a())",
    "state": "state.count = 1",
    "fetch": "await fetch('https://example.com')",
    "an import": "import { join } from 'path'; join('a')",
    "an enum": "enum A { B }\nA.B",
    "a decorator": "function d(t: any) {}\n@d class A {}",
    "a parameter property": "class A { constructor(readonly a: number) {} }\nnew A(1)",
    "a namespace": "namespace A { export const b = 1 }\nA.b",
    "many calls": f"{'tools.a();' * (MAX_LOOKED_AT + 1)}",
}  # fmt: skip


@pytest.mark.parametrize("name", LIGHT)
def test_a_program_that_computes_little_suits_the_interpreter(name: str) -> None:
    assert is_light(LIGHT[name])


@pytest.mark.parametrize("name", HEAVY)
def test_any_other_program_does_not(name: str) -> None:
    assert not is_light(HEAVY[name])


def test_a_program_says_nothing_about_an_engine_that_nobody_asked_about() -> None:
    assert not prepare("1 + 1").is_light


def test_most_programs_that_models_write_suit_the_interpreter() -> None:
    expected = tomllib.loads((PROGRAMS / "expected.toml").read_text())
    right = [name for name, about in expected.items() if "code" not in about and not name.endswith(".py")]
    light = [name for name in right if is_light((PROGRAMS / name).read_text())]
    assert len(light) >= 0.8 * len(right), sorted(set(right) - set(light))


def test_a_hostile_text_is_looked_at_in_linear_time() -> None:
    for piece in (
        "const a: ",
        "f(a => ",
        "x.map(",
        "const a = await ",
        "[...",
        "for (const a of b) ",
        "tools.a({a:",
        "a.sort(",
    ):
        try:
            is_light(piece * 20_000)
            is_light(piece * 100 + "1" + ")" * 100)
        except ProgramError:
            continue
