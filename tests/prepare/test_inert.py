"""Reading a program never runs any of it, and is not trusted to see everything in it (threats S21 and S22)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.errors import ProgramError
from gloveport.prepare import check, prepare
from gloveport.sandbox.engines.deno.engine import find_deno
from tests.prepare.test_properties import Nothing

# Each leaves a canary in the file `PLACE` as soon as any of it runs.
PYTHON = {
    "a statement": "MARK",
    "a decorator": "@(lambda f: MARK)\ndef f(): pass",
    "a decorator of a class": "@(lambda f: MARK)\nclass C: pass",
    "a default argument": "def f(x=MARK): pass",
    "a default of a lambda": "lambda x=MARK: 0",
    "an annotation": "def f(x: MARK): pass",
    "an annotation of a variable": "x: MARK = 1",
    "the body of a class": "class C:\n    MARK",
    "a base of a class": "class C(*[MARK or object]): pass",
    "a metaclass": "class C(metaclass=lambda *a: MARK): pass",
    "an import": "import sys\nsys.path.insert(0, FOLDER)\nimport payload",
    "a comprehension": "[MARK for _ in range(1)]",
    "a formatted text": 'f"{MARK}"',
    "an assertion": "assert MARK",
    "a pattern": "match 1:\n    case _ if MARK: pass",
    "a slice": "[0][slice(MARK)]",
    "an exception's type": "try:\n    1 / 0\nexcept (MARK or Exception): pass",
    "a context": "with (MARK or open('/dev/null')): pass",
}
SCRIPTS = {
    "a statement": "Deno.writeTextFileSync(PLACE, '')",
    "a function called at once": "(() => Deno.writeTextFileSync(PLACE, ''))()",
    "a static block": "class C { static { Deno.writeTextFileSync(PLACE, '') } }",
    "a static field": "class C { static x = Deno.writeTextFileSync(PLACE, '') }",
    "a computed name": "const o = { [Deno.writeTextFileSync(PLACE, '')]: 1 }",
    "a base of a class": "class C extends (Deno.writeTextFileSync(PLACE, ''), Object) {}",
    "a default argument": "((x = Deno.writeTextFileSync(PLACE, '')) => x)()",
    "an enumeration": "enum E { A = Deno.writeTextFileSync(PLACE, '') as any }",
    "a namespace": "namespace N { Deno.writeTextFileSync(PLACE, '') }",
    "a template": "`${Deno.writeTextFileSync(PLACE, '')}`",
    "a tag of a template": "(() => Deno.writeTextFileSync(PLACE, ''))``",
    "an import": "import 'PAYLOAD'",
    "an export": "export default Deno.writeTextFileSync(PLACE, '')",
    "destructuring": "const { x = Deno.writeTextFileSync(PLACE, '') } = {}",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "payload.py").write_text(f"import os; os.mkdir({str(tmp_path / 'canary')!r})")
    (tmp_path / "payload.js").write_text(f"Deno.writeTextFileSync({str(tmp_path / 'canary')!r}, '')")
    return tmp_path / "canary"


def aimed(text: str, place: Path) -> str:
    folder = place.parent
    text = text.replace("MARK", "__import__('os').mkdir(PLACE)")
    return (
        text.replace("PLACE", repr(str(place)))
        .replace("FOLDER", repr(str(folder)))
        .replace("PAYLOAD", f"{folder}/payload.js")
    )


_heard: list[str] | None = None


def _hear(event: str, _: Any) -> None:
    if _heard is not None:
        _heard.append(event)


sys.addaudithook(_hear)


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Record what running code would cause in the interpreter: compiling, opening files, starting processes, connecting."""
    global _heard
    events: list[str] = []
    _heard = events
    try:
        yield events
    finally:
        _heard = None


def read(text: str, language: Any) -> None:
    with contextlib.suppress(ProgramError):
        check(prepare(text, language=language), Nothing())


@pytest.mark.parametrize("name", PYTHON)
def test_reading_python_runs_none_of_it(place: Path, name: str) -> None:
    text = aimed(PYTHON[name], place)
    read("x = 1\nx", "python")  # what is imported at the first use is imported
    with listening() as events:
        read(text, "python")
    assert not place.exists()
    assert set(events) <= {"compile", "object.__getattr__", "sys._getframe", "gc.get_objects"}
    with contextlib.suppress(Exception):  # the control
        exec(compile(text, "control", "exec", dont_inherit=True), {})
    sys.modules.pop("payload", None)
    assert place.exists()


@pytest.mark.integration
@pytest.mark.parametrize("name", SCRIPTS)
def test_reading_a_script_runs_none_of_it(place: Path, name: str) -> None:
    text = aimed(SCRIPTS[name], place)
    read("const x = 1; x", "typescript")
    with listening() as events:
        read(text, "typescript")
    assert not place.exists()
    assert not {event for event in events if event.startswith(("exec", "open", "subprocess", "os.", "socket"))}
    script = place.parent / "control.ts"
    script.write_text(text)
    subprocess.run([find_deno(), "run", "-A", "--no-check", str(script)], check=False, capture_output=True, timeout=60)
    assert place.exists()


# Ways to hide what `prepare` looks for. Each returns "reached" if it succeeds.
HIDDEN = {
    "an escaped name": "return typeof D\\u0065no === 'undefined' ? 'no' : 'reached'",
    "an escaped name in braces": "return typeof \\u{44}eno === 'undefined' ? 'no' : 'reached'",
    "an escaped eval": "return \\u0065val('\"reached\"')",
    "an escaped keyword": "return await imp\\u006frt('node:fs') && 'reached'",
    "an import with a comment": "return await import/* */('node:fs') && 'reached'",
    "an import with a line end": "return await import\n('node:fs') && 'reached'",
    "an import of a made name": "return await import(['no', 'de:fs'].join('')) && 'reached'",
    "an import of a template": "return await import(`node:${'fs'}`) && 'reached'",
    "an import in a class": "class C { static x = import('node:fs') }; return await C.x && 'reached'",
    "an import in a default": "return await ((x = import('node:fs')) => x)() && 'reached'",
    "an import in a template": "return `${await import('node:fs') && 'reached'}`",
    "an import behind a regular expression": "const a = 1, g = 1; return a /import('x')/g ? 1 : await import('node:fs') && 'reached'",
    "an import behind a division": "let a = 4\n/2/1; return await import('node:fs') && 'reached'",
    "an import in a comment of a page": "<!-- x\nreturn await import('node:fs') && 'reached'",
    "an import source": "import source x from 'node:fs'; return 'reached'",
    "a deferred import": "import defer * as x from 'node:fs'; return x.readFileSync && 'reached'",
    "an import with attributes": "return await import('file:///etc/passwd', { with: { type: 'text' } }) && 'reached'",
    "an export from": "export * from 'node:fs'; export default 'reached'",
    "import.meta": "return import.meta.resolve('node:fs') && await import(import.meta.resolve('node:fs')) && 'reached'",
    "a declared resource": "using x = { [Symbol.dispose]() {} , fs: await import('node:fs') }; return x.fs && 'reached'",
    "an asynchronous resource": "await using x = { async [Symbol.asyncDispose]() {}, f: eval('1') }; return x.f && 'reached'",
    "eval by another name": "const { eval: e } = globalThis; return e('\"reached\"')",
    "eval in a chain": "return globalThis?.['ev' + 'al']?.('\"reached\"')",
    "Function of a function": "return (() => {}).constructor('return \"reached\"')()",
    "Function of a generator": "return (function* () {}).constructor('yield \"reached\"')().next().value",
    "Function by Reflect": "return Reflect.construct(Function, ['return \"reached\"'])()",
    "a timer of a text": "globalThis.x = 'no'; setTimeout('x = \"reached\"'); await new Promise((r) => setTimeout(r, 5)); return x",
    "a type that hides it": "return (eval as unknown as (x: string) => string)('\"reached\"')",
    "a decorator": "const d = (f: any) => eval('\"reached\"'); @d class C {}; return C",
    "a fence in a fence": "```ts\nreturn `\n```\n${eval('\"reached\"')}`\n```",
    "a wrapper closed early": "return 1 }); import fs from 'node:fs'; export const x = (() => { 'reached'",
    "a module made by hand": "} export default async () => (await import('node:fs')) && 'reached'; {",
}


async def test_what_hides_from_the_reader_reaches_nothing(port: Gloveport) -> None:
    room = asyncio.Semaphore(4)

    async def run(text: str) -> Any:
        async with room:
            return await port.run(text, limits={"wall_seconds": 20})

    outcomes = dict(zip(HIDDEN, await asyncio.gather(*map(run, HIDDEN.values())), strict=True))
    assert {name for name, outcome in outcomes.items() if "reached" in str(outcome.value)} == set()
    assert {o.error.code for o in outcomes.values() if o.error} <= {
        "syntax-error",
        "program-failed",
        "import-refused",
        "unsupported",
    }
