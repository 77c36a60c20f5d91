"""Program texts, in both languages: the parser, the checks, the run that follows, and the values that it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fuzz.stall.entrance import MIB, Attack, Document, Entrance, Refusal, Take
from fuzz.stall.recipe import many, nest, times
from gloveport import Gloveport

LIMITS = {"wall_seconds": 20, "cpu_seconds": 2, "max_calls": 200}
MARKS = "\u0345\u0301\u0327"  # combining marks of several classes, which normalisation sorts
COLLIDING = Path(__file__).with_name("colliding.js").read_text()
PRIME = 2**61 - 1  # the modulus of Python's hash of an int


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def echo(value: Any = None) -> Any:
    """Give back what was given."""
    return value


async def get_weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "temp_f": 50, "days": days}


TOOLS = [add, echo, get_weather]


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Run each text as a program of a port with a few tools."""
    async with Gloveport(tools=TOOLS) as port:

        async def take(document: Document) -> Attack:
            code, language = document["code"], "python" if document.get("language") == "python" else "typescript"

            async def attack() -> Refusal | None:
                return Refusal.ending(await port.run(code, language=language, limits=LIMITS))

            return attack

        yield take


def _ts(code: Any) -> Document:
    return {"language": "typescript", "code": code}


def _py(code: Any) -> Document:
    return {"language": "python", "code": code}


def _colliding(use: str) -> Document:
    """A program that makes a Map of integers that collide in a Python dict."""
    return _ts([COLLIDING, f"const m = new Map(colliding(87000).map((one): [number, number] => [one, 0])); {use}"])


SEEDS: dict[str, Document] = {
    # known ways
    "python-combining-marks": _py(["a", times(40_000, "\u0345\u0301"), " = 1"]),
    "typescript-retries": _ts("class<T/*>[[]}A<y>c "),
    "typescript-unclosed-comments": _ts(times(2_000, "/*void ")),
    "map-of-colliding-integers": _colliding("return m"),
    "map-of-colliding-integers-as-argument": _colliding("await tools.echo({value: m})"),
    "map-of-wide-integers": _ts(f"const m = new Map(); for (let i = 1n; i <= 900n; i++) m.set(i * {PRIME}n, 0); return m"),
    # texts
    "typescript-brackets": _ts(nest(100_000, "(", "1", ")")),
    "typescript-templates": _ts(nest(5_000, "`${", "1", "}`")),
    "typescript-generics": _ts(["let a: ", nest(3_000, "A<", "b", ">"), " = 1"]),
    "typescript-arrows": _ts([times(3_000, "(a) => "), "1"]),
    "typescript-ambiguous": _ts(times(20_000, "a < b > (c), ")),
    "typescript-regex-or-division": _ts(times(20_000, "a / b / ( c ) / ")),
    "typescript-else": _ts(times(8_000, "if (a) {} else ")),
    "typescript-unary": _ts([times(50_000, "!- "), "1"]),
    "typescript-strings": _ts(times(50_000, '"a" + ')),
    "typescript-quotes": _ts(times(100_000, "'\"`")),
    "typescript-fences": _ts(times(50_000, "```ts\n1\n")),
    "typescript-half-fences": _ts(times(100_000, "`` `\n")),
    "typescript-comment-ends": _ts(times(100_000, "*/ /* ")),
    "typescript-identifiers": _ts(["let a", times(100_000, "\u0301\u0327"), " = 1"]),
    "typescript-escapes": _ts(["let a", times(50_000, "\\u0301"), " = 1"]),
    "typescript-misspelt-tools": _ts({"count": 10_000, "of": "tools.get_wether<i>({});"}),
    "typescript-long-tool": _ts(["tools.", times(300_000, "get_"), "({})"]),
    "typescript-wide-object": _ts(["tools.echo({value: {", many(20_000, "a<i>: 1"), "}})"]),
    "typescript-declarations": _ts({"count": 20_000, "of": "const a<i> = <j>;"}),
    "typescript-imports": _ts({"count": 10_000, "of": 'import a<i> from "b<i>";\n'}),
    "typescript-types": _ts({"count": 5_000, "of": "type A<i> = B<j> extends infer C ? C : never;"}),
    "typescript-enums": _ts(["enum A {", many(20_000, "B<i> = <i>"), "}"]),
    "typescript-lines": _ts(times(500_000, "\n")),
    "typescript-crlf": _ts([times(300_000, "\r\n"), ")"]),
    "typescript-optional-chains": _ts(["a", times(50_000, "?.b!")]),
    "typescript-jsx": _ts(nest(5_000, "<a>", "", "</a>")),
    "typescript-decorators": _ts([times(20_000, "@a "), "class B {}"]),
    "typescript-labels": _ts([{"count": 5_000, "of": "a<i>: "}, "1"]),
    "python-brackets": _py(nest(100_000, "(", "1", ")")),
    "python-lambdas": _py([times(5_000, "lambda: "), "1"]),
    "python-unary": _py([times(50_000, "not -"), "1"]),
    "python-indents": _py({"count": 99, "of": "if 1:\n "}),
    "python-fstrings": _py(nest(200, 'f"{', "1", '}"')),
    "python-fstring-parts": _py(['f"', times(50_000, "{a}"), '"']),
    "python-strings": _py(times(50_000, "'a' ")),
    "python-binary": _py([times(50_000, "1 + "), "1"]),
    "python-comparisons": _py([times(50_000, "1 < "), "1"]),
    "python-digits": _py(["1", times(4_000, "0")]),
    "python-hex-digits": _py(["0x", times(500_000, "f")]),
    "python-power": _py("9**9**9**9"),
    "python-fold": _py([times(100, "'a' * 4000 * "), "1"]),
    "python-names": _py({"count": 30_000, "of": "a<i> = <j>\n"}),
    "python-attributes": _py(["a", times(50_000, ".b")]),
    "python-calls": _py([nest(3_000, "f(", "1", ")")]),
    "python-decorators": _py([times(20_000, "@a\n"), "def f(): pass"]),
    "python-backslashes": _py([times(100_000, "\\\n"), "1"]),
    "python-triple-quotes": _py(times(100_000, '"""')),
    "python-prompts": _py(times(50_000, ">>> 1\n... 2\n")),
    "python-tabs": _py(["if 1:\n", {"count": 5_000, "of": "\t 1\n"}]),
    "python-misspelt-tools": _py({"count": 5_000, "of": "await tools.get_wether<i>()\n"}),
    "python-keywords": _py(["await tools.echo(", many(20_000, "a<i>=1"), ")"]),
    "python-match": _py(["match a:\n case ", {"count": 20_000, "of": "b<i>", "join": "|"}, ": 1"]),
    "python-walrus": _py(nest(3_000, "(a := ", "1", ")")),
    "python-globals": _py(["def f():\n global ", many(30_000, "a<i>")]),
    "python-nul": _py([times(100_000, "a\x00"), ""]),
    # values that a program makes
    "long-result": _ts("return 'x'.repeat(8_000_000)"),
    "wide-result": _ts("return Object.fromEntries(Array.from({length: 300000}, (_, i) => ['k' + i, i]))"),
    "many-results": _ts("return Array.from({length: 90000}, (_, i) => ({a: i}))"),
    "marks-result": _ts(f"return '{MARKS}'.repeat(300000)"),
    "deep-result": _ts("let x: any = 1; for (let i = 0; i < 110; i++) x = [x]; return Array(700).fill(x)"),
    "bigints": _ts("return Array.from({length: 3000}, () => 10n ** 3999n)"),
    "dates": _ts("return Array.from({length: 90000}, (_, i) => new Date(i * 1e9))"),
    "errors": _ts(
        "let e: any = new Error('a'); for (let i = 0; i < 40; i++) e = new Error('b'.repeat(9999), {cause: e}); throw e"
    ),
    "long-error": _ts("throw new Error(`${'/home/x '.repeat(400000)}`)"),
    "name-error": _ts("const e = new ReferenceError('a'.repeat(2000000) + ' is not defined'); throw e"),
    "wide-argument": _ts(
        "await tools.echo({value: Object.fromEntries(Array.from({length: 600000}, (_, i) => ['k' + i, i]))})"
    ),
    "list-argument": _ts("await tools.echo({value: Array.from({length: 1500000}, (_, i) => i)})"),
    "bytes-argument": _ts("await tools.echo({value: new Uint8Array(10_000_000)})"),
    "bad-arguments": _ts(
        "await (tools as any).add(Object.fromEntries(Array.from({length: 300000}, (_, i) => ['k' + i, i])))"
    ),
    "many-logs": _ts("for (let i = 0; i < 100000; i++) console.log('a')"),
    "long-log": _ts("console.log('\\u0301'.repeat(4_000_000))"),
    "many-calls": _ts("await Promise.all(Array.from({length: 200}, (_, i) => tools.echo({value: 'x'.repeat(50000)})))"),
    "search": _ts("for (let i = 0; i < 50; i++) await tools.search('weather city '.repeat(20000))"),
    "python-set": _py("return {i * 2**26 for i in range(1, 60000)}"),
    "python-dict": _py("return {i * 2**26: 0 for i in range(1, 60000)}"),
}

WORDS = (
    "await ",
    "tools.echo(",
    "return ",
    "=> ",
    "async ",
    "function ",
    "class A ",
    "extends ",
    "<T>",
    "as any",
    "satisfies ",
    *("/*", "*/", "//", "`", "${", "}", "'", '"', "\\", "```", "\n", "def f(): ", "lambda: ", "if ", "else ", "in ", 'f"{'),
    "\u0301",
    "\u0345",
    "\u202e",
    "\u00df",
    "\ufb03",
    "9",
    "0x",
    "1e",
    "*",
    "**",
    "<",
    ">",
    "=",
    "?",
    ":",
    ",",
    ";",
    "@",
    "#",
)

ENTRANCE = Entrance(
    "programs", __name__, opened, SEEDS, _ts("await tools.search('a'); await tools.add({a: 1, b: 2})"), WORDS, MIB
)
