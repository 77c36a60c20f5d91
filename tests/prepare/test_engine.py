"""Prepared modules do what the agent meant: every form runs in the real engine, in one process for all of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import deno
import pytest

from gloveport.prepare import locate, prepare
from gloveport.types import Program

UNDEFINED = "undefined"
FENCE = "```"

FORMS: dict[str, tuple[str, Any]] = {
    "an empty program": ("", UNDEFINED),
    "only comments": ("// nothing\n/* at all */", UNDEFINED),
    "only types": ("interface A { x: number }\ntype B = A | string", UNDEFINED),
    "a trailing expression": ("1 + 2", 3),
    "a trailing expression with a semicolon": ("const x = 2;\nx * 2;", 4),
    "a trailing expression before comments": ("const x = 2\nx * 2 // twice\n/* done */\n", 4),
    "a trailing expression with a comment inside": ("1 + // one\n  2", 3),
    "a trailing await": ("await Promise.resolve(7)", 7),
    "a trailing sequence": ("1, 2", 2),
    "a trailing cast": ("const x: unknown = 5;\nx as number", 5),
    "a trailing satisfies": ("({ a: 1 }) satisfies { a: number };", {"a": 1}),
    "a trailing assignment": ("let x; x = 9", 9),
    "a trailing template": ("const n = 3;\n`n is ${n}`", "n is 3"),
    "a trailing unary after a line without semicolon": ("let a = 1\n++a", 2),
    "a top-level return": ("return 4", 4),
    "a top-level return beside await": ("const x = await 3;\nif (x > 2) return x * 2;\n'small'", 6),
    "return without a value": ("return", UNDEFINED),
    "an if at the end has no value": ("if (true) { 5 }", UNDEFINED),
    "a try at the end has no value": ("try { 5 } catch { 6 }", UNDEFINED),
    "a for at the end has no value": ("for (const x of [1]) x", UNDEFINED),
    "an object alone": ("{a: 1, b: 2}", {"a": 1, "b": 2}),
    "an object alone with a semicolon": ("{ a: 1, b: [2] };", {"a": 1, "b": [2]}),
    "an object of shorthands": ("const a = 1, b = 2;\n{ a, b }", {"a": 1, "b": 2}),
    "an object of shorthands and pairs": ("const a = 1;\n{ a, b: 2 }", {"a": 1, "b": 2}),
    "an object of shorthands and pairs after a line without semicolon": ("const a = 1\n{ a, b: a + 1 }; // done", {"a": 1, "b": 2}),
    "an object of shorthands and pairs in a fence": (f"So\n{FENCE}ts\nlet a = 1\n{{ a, b: 2 }}\n{FENCE}\n", {"a": 1, "b": 2}),
    "an object of shorthands and pairs alone": ("{ undefined, b: 2 }", {"b": 2}),
    "an empty object": ("{}", {}),
    "a block stays a block": ("let x = 1;\n{ x = 2; }", UNDEFINED),
    "a lone arrow": ("async () => { return 1 }", 1),
    "a lone arrow with a semicolon": ("async () => { return 1 };", 1),
    "a lone arrow with comments around": ("// go\nasync () => 1; // done", 1),
    "a lone arrow in parentheses": ("(async () => 2)", 2),
    "a lone arrow in parentheses with a semicolon": ("(async () => { return 2 });\n", 2),
    "a lone arrow with a type": ("async (tools: any): Promise<number> => tools.add(1, 2)", 3),
    "a lone arrow after types": ("type A = number;\nasync (): Promise<A> => 8", 8),
    "a lone arrow after helpers": ("const twice = (x) => x * 2;\nasync () => twice(4)", 8),
    "a called arrow": ("(async () => 3)()", 3),
    "an awaited called arrow": ("await (async () => { return 3 })();", 3),
    "a lone anonymous function": ("async function () { return 6 }", 6),
    "a lone named function": ("async function run(tools) { return tools.name }", "tools"),
    "a named function in parentheses": ("(async function run() { return 6 });", 6),
    "a lone constant function": ("const run = async () => 5", 5),
    "main as a constant": ("const main = async () => 5", 5),
    "main as a constant with a semicolon": ("const main = async () => {\n  return 5;\n};\n", 5),
    "main among declarations": ("const x = 4;\nfunction twice(n) { return n * 2 }\nasync function main() { return twice(x) }", 8),
    "main that calls itself": ("function main(t, n = 3) { return n ? main(t, n - 1) : 'done' }", "done"),
    "main that is called": ("async function main() { return 1 }\nawait main() + 1", 2),
    "main that is used by a declaration": ("function main() { return 1 }\nconst x = main()", UNDEFINED),
    "main that is called and returned": ("async function main() { return 11 }\nreturn main()", 11),
    "a generator is not called": ("function* main() { yield 1 }", UNDEFINED),
    "export default of a value": ("export default 5 + 1", 6),
    "export default of an object": ("export default { a: 1 }", {"a": 1}),
    "export default of a promise": ("export default Promise.resolve(1)", 1),
    "export default of an arrow": ("export default async (tools) => tools.name;", "tools"),
    "export default of a function": ("export default async function main(tools) { return tools.add(2, 2) }", 4),
    "export default of an anonymous function": ("export default function () { return 1 }", 1),
    "export default of a name": ("const run = () => 12;\nexport default run;", 12),
    "export default by clause": ("const run = () => 13;\nexport { run as default };", 13),
    "export default beside other exports": ("export const x = 2;\nexport type T = number;\nexport default () => x;", 2),
    "a named export of main": ("export async function main() { return 14 }", 14),
    "a named constant main": ("export const main = async () => 15;", 15),
    "a named export of a lone function": ("export async function run() { return 16 }", 16),
    "a named export and an expression": ("export const x = 17;\nx", 17),
    "a named export of a value": ("export const x = 1", UNDEFINED),
    "a named export beside a return": ("export const x = 18;\nexport { x as y };\nreturn x", 18),
    "an enum": ("enum Color { Red = 3 }\nColor.Red", 3),
    "a const enum": ("const enum Color { Red = 4 }\nreturn Color.Red", 4),
    "generics": ("function id<T>(x: T): T { return x }\nid<string>('g')", "g"),
    "satisfies": ("const x = { a: 1 } satisfies Record<string, number>;\nx.a", 1),
    "a class with modifiers": ("class A { constructor(private x = 2, readonly y?: number) {} get() { return this.x } }\nnew A().get()", 2),
    "an optional member": ("class A { x?; m?() { return 1 } }\nnew A().x ?? 'none'", "none"),
    "a decorator": ("function d(v: any, c: any) { return v }\n@d class A { static x = 5 }\nA.x", 5),
    "a namespace": ("namespace A { export const x = 19 }\nA.x", 19),
    "a declaration without code": ("declare const missing: number;\ndeclare global { interface X {} }\n20", 20),
    "a non-null assertion": ("const x: number | null = 21;\nx!", 21),
    "an abstract class": ("abstract class A { abstract x(): void; static y = 22 }\nA.y", 22),
    "overloads": ("function f(x: string): string;\nfunction f(x: any) { return x }\nf('o')", "o"),
    "using": ("using x = { [Symbol.dispose]() {} };", UNDEFINED),
    "private members": ("class A { #x = 1; static { A.y = 2 } get x() { return this.#x } }\nnew A().x + A.y", 3),
    "a type-only import": ("import type { X } from 'y';\nimport { type Z } from 'y';\nconst x: X = 23;\nx", 23),
    "a type-only import in a module": ("import type { X } from 'y';\nexport default (x: X) => 24", 24),
    "import.meta": ("import.meta.url", "file:///workspace/program.ts"),
    "import.meta after a line without semicolon": ("const a = tools\nimport.meta.main", True),
    "import.meta in a module": ("export default function () { return [import.meta.dirname, new.target === undefined] }", ["/workspace", True]),
    "a directive": ("'use strict';\nconst x = 1;\nx", 1),
    "a directive before main": ("'use strict';\nfunction main() { return 26 }", 26),
    "a string alone": ("'hello'", "hello"),
    "a hashbang": ("#!/usr/bin/env -S deno run\n26", 26),
    "a byte order mark": ("\ufeff27", 27),
    "a byte order mark and a hashbang": ("\ufeff#!/usr/bin/env node\n27", 27),
    "a byte order mark in a module": ("\ufeffexport default 28", 28),
    "CRLF": ("const x = 1\r\nconst y = 2\r\nx + y\r\n", 3),
    "CR": ("const x = 1\rconst y = 2 // two\rx + y\r", 3),
    "U+2028": ("const x = 1\u2028const y = 2 // two\u2028x + y", 3),
    "U+2028 in a string": ("const x = '\u2028'\nx.length", 1),
    "NUL in a string": ("'a\0b'.length", 3),
    "other scripts": ("const größe = '日本'; const 変数 = '😀';\ngröße + 変数", "日本😀"),
    "joiners in names": ("const a\u200db = 1\na\u200db", 1),
    "a no-break space": ("const x =\u00a01\u00a0+ 2\nx", 3),
    "an escaped line end": ("'a\\\nb'", "ab"),
    "html-like comparison": ("let a = 1, b = 2\na<b", True),
    "a regular expression": ("/[/`'\"]/.test('`')", True),
    "nested templates": ("`a${`b${1 + 1}`}`", "ab2"),
    "a fence": (f"{FENCE}ts\n29\n{FENCE}", 29),
    "a fence in prose": (f"Here's the program:\n\n{FENCE}typescript\nconst x = 29;\nx\n{FENCE}\n\nIt's done, isn't it?", 29),
    "a fence after one word": (f"Code\n{FENCE}ts\n29\n{FENCE}", 29),
    "a fence of an arrow": (f"Run `this`:\n{FENCE}js\nasync () => {{ return 30 }};\n{FENCE}", 30),
    "a fence of a module": (f"Run:\n{FENCE}TS\nexport default async (tools) => tools.name\n{FENCE}\n", "tools"),
    "a fence with a mixed-case label": (f"{FENCE}TypeScript\n31\n{FENCE}", 31),
    "a fence labelled Js": (f"{FENCE}Js\n31\n{FENCE}", 31),
    "a fence labelled tsx": (f"{FENCE}tsx\nconst x: number = 31; x\n{FENCE}", 31),
    "a fence with attributes": (f'{FENCE}ts title="a.ts" {{1,2}}\n31\n{FENCE}', 31),
    "a fence with an odd label": (f"{FENCE}{{.ts}}\n31\n{FENCE}", 31),
    "a fence of tildes": ("~~~ts\n32\n~~~", 32),
    "a fence of tildes in prose": ("Run this\n\n~~~\n32\n~~~\nplease", 32),
    "an indented fence": (f"1. Do:\n\n   {FENCE}ts\n   33\n   {FENCE}\n", 33),
    "a quoted fence": (f"> see\n> {FENCE}\n\n{FENCE}ts\n33\n{FENCE}\n", 33),
    "a fence left open": (f"Here:\n{FENCE}ts\nconst x = 34;\nx", 34),
    "a fence closed on its last line": (f"{FENCE}ts\n34{FENCE}", 34),
    "a fence on one line": (f"{FENCE}ts 30 + 5{FENCE}", 35),
    "a longer fence": (f"````ts\n/*\n{FENCE}\n*/\n36\n````", 36),
    "a fence with CRLF": (f"Here:\r\n{FENCE}ts\r\nconst x = 37\r\nx\r\n{FENCE}\r\nbye", 37),
    "several fences": (f"First\n{FENCE}ts\nconst x = 1\n{FENCE}\nthen\n{FENCE}ts\nx + 37\n{FENCE}", 38),
    "fences of other languages": (f'{FENCE}bash\nrm -rf /\n{FENCE}\n{FENCE}ts\n39\n{FENCE}\n{FENCE}json\n{{"a": 1}}\n{FENCE}', 39),
    "an unlabelled fence beside a labelled one": (f"{FENCE}\noutput!\n{FENCE}\n{FENCE}ts\n40\n{FENCE}", 40),
    "only unlabelled fences": (f"So:\n{FENCE}\n41\n{FENCE}", 41),
    "a fence with escaped fences in a template": (f"{FENCE}ts\nconst md = `\n\\`\\`\\`js\nx\n\\`\\`\\`\n`\nmd.length\n{FENCE}", 13),
    "a fence with a fence in a comment": (f"{FENCE}ts\n/*\n{FENCE}\nexample\n{FENCE}\n*/\n42\n{FENCE}", 42),
    "a fence with tildes in a template": (f"{FENCE}ts\n`\n~~~\nx\n~~~\n`.length\n{FENCE}", 11),
    "a template that holds escaped fences": ("const md = `\n\\`\\`\\`ts\nevil()\n\\`\\`\\`\n`;\nmd.length", 18),
    "a template that holds tildes": ("const md = `\n~~~ts\nevil()\n~~~\n`;\nmd.length", 18),
    "a string that holds a fence": (f"'{FENCE}ts\\nevil()\\n{FENCE}'.length", 16),
    "a comment that holds a fence": (f"/*\n{FENCE}ts\nevil()\n{FENCE}\n*/\n43", 43),
    "a line comment that holds a fence": (f"// {FENCE}ts\n// evil()\n// {FENCE}\n44", 44),
    "a fence of nothing": (f"{FENCE}ts\n{FENCE}", UNDEFINED),
}  # fmt: skip

THROWS: dict[str, tuple[str, str, tuple[int, int] | None]] = {
    "a thrown string": ('throw "boom"', "boom", None),
    "a thrown null": ("throw null", "null", None),
    "an error on a later line": ("const x: number = 1;\n  throw new Error('late')", "late", (2, 9)),
    "an error in a fence": (f"Prose\n\n{FENCE}js\nconst x = 1;\nnull.x\n{FENCE}", "Cannot read", (5, 6)),
    "an error after other scripts": ("const s = '😀日本'; null.x", "Cannot read", (1, 23)),
    "an error after import.meta": ("import.meta; null.x", "Cannot read", (1, 19)),
    "an error in a trailing expression": ("\n\n  null.x", "Cannot read", (3, 8)),
    "a name declared twice": ("let x = 1;\nlet x = 2;", "has already been declared", None),
}


def write(folder: Path, index: int, program: Program) -> None:
    suffix = "js" if program.dialect == "javascript" else "ts"
    (folder / f"{index:03}.{suffix}").write_text(program.code, encoding="utf-8", newline="")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Program, dict[str, Any]]]:
    """Return what the engine returned for each program of both tables."""
    folder = tmp_path_factory.mktemp("programs")
    programs: dict[str, Program] = {}
    for index, (name, case) in enumerate([*FORMS.items(), *THROWS.items()]):
        try:
            programs[name] = prepare(case[0])
        except Exception as error:  # noqa: BLE001 - the test of this row shows it
            error.add_note(f"in the row {name!r}")
            continue
        write(folder, index, programs[name])
    runner = Path(__file__).with_name("runner.js")
    environment = {"DENO_DIR": str(folder / "deno"), "NO_COLOR": "1", "HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [deno.find_deno_bin(), "run", "--no-prompt", "--no-config", "--no-remote", "--no-npm", "--allow-read"]
    done = subprocess.run(
        [*command, str(runner), str(folder)], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    answers = {line["name"][:3]: line for line in map(json.loads, done.stdout.splitlines())}
    names = [*FORMS, *THROWS]
    return {name: (programs[name], answers[f"{index:03}"]) for index, name in enumerate(names) if name in programs}


@pytest.mark.integration
@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_its_value_in_the_engine(results: dict[str, Any], name: str) -> None:
    text, value = FORMS[name]
    if name not in results:
        prepare(text)
    program, answer = results[name]
    assert answer.get("value", answer) == value, program.code


@pytest.mark.integration
@pytest.mark.parametrize("name", THROWS)
def test_a_throw_is_left_to_the_engine_and_found_in_the_agents_text(results: dict[str, Any], name: str) -> None:
    _, message, position = THROWS[name]
    program, answer = results[name]
    assert message in answer["error"]
    if position:
        matched = re.search(r"blob:\S+?:(\d+):(\d+)", answer["stack"])
        assert matched, answer["stack"]
        assert locate(program, int(matched[1]), int(matched[2])) == position


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("1 + 2", "javascript"),
        ("class A extends B { #x = 1; static y; get z() { return 1 } }", "javascript"),
        ("async (tools, { a = 1, ...b }, [c]) => a?.b ?? c", "javascript"),
        ("label: for (const x of y) { continue label }", "javascript"),
        ("export const x = 1; export { x as y }", "javascript"),
        ("const type = 1, as = 2, readonly = 3; const o = { type, declare: 1 }", "javascript"),
        ("let x: number", "typescript"),
        ("x as y", "typescript"),
        ("x!", "typescript"),
        ("class A { x? }", "typescript"),
        ("class A { private x = 1 }", "typescript"),
        ("class A { readonly x = 1 }", "typescript"),
        ("f<string>(1)", "typescript"),
        ("(x?) => x", "typescript"),
        ("enum A { B }", "typescript"),
        ("@d class A {}", "typescript"),
        ("import type { X } from 'y'", "typescript"),
    ],
)
def test_the_dialect_is_javascript_only_when_no_node_needs_the_transpiler(text: str, dialect: str) -> None:
    try:
        assert prepare(text).dialect == dialect
        assert prepare(text, language="javascript").dialect == dialect
    except Exception as error:
        raise AssertionError(text) from error


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("1", "body"),
        ("", "body"),
        ("() => 1", "function"),
        ("function main() {}", "function"),
        ("export default 1", "value"),
        ("export default class {}", "value"),
        ("export default function* () {}", "value"),
        ("export default () => 1", "function"),
        ("export default (async function () {}) as any", "function"),
        ("const f = 1; export default f", "value"),
        ("export const x = 1", "value"),
        ("namespace A {}", "value"),
        ("const x = 1; const main = 5", "body"),
        ("await 1; () => 1", "body"),
    ],
)
def test_the_entry_says_how_to_get_the_result(text: str, entry: str) -> None:
    assert prepare(text).entry == entry
