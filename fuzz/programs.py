"""Broken or malicious programs: `prepare` returns a Program or raises a ProgramError, nothing else (S13)."""

from __future__ import annotations

import ast
import contextlib
import os
import resource
import warnings
from functools import partial

from fuzz.mutation import mutate_tokens
from fuzz.target import BrokenPromise, Target
from gloveport.errors import ProgramError
from gloveport.prepare import check, locate, prepare
from gloveport.prepare.subset import Subset
from gloveport.sandbox.engines.monty.subset import MontySubset
from gloveport.types import Language, Program, Tool

MAX_CPU_SECONDS = 2  # as a program of this size has

TYPESCRIPT = (
    b"const a: number = await tools.github.issues.list({ state: 'open' });\nreturn a.length",
    b"async (input, tools) => { const { x = 1, ...rest } = input; return `${x}${rest}`; };",
    b"export default function* f<T extends object>(this: T, a?: string): Generator { yield* [1]; }",
    b"Here is the code:\n```ts\nimport { readFile } from 'fs';\nenum E { A = 1 }\n```\nand that was it.",
    b"label: for await (const x of y) { if (x) continue label; else break; }\n/re[/]x/gu.test('\\u{1F600}') ? 1 : 0",
    b"class A<T> { #p = 1; static { this.x = 1 } get y() { return this.#p! } @d() m() {} }\nnew A() satisfies A<any>",
    b"try { throw 1 } catch { } finally { using r = f(); }\n(await import('x' + 1)).default\n<div>{x}</div>",
    b"const { search } = tools; const t = tools['github']; t?.issues.get({ id: 1n }); eval('1'); type T = { a: 1 }",
)
PYTHON = (
    b"import asyncio\nrows = await asyncio.gather(*(tools.github.issues.get(number=n) for n in range(3)))\nlen(rows)",
    b"async def main(input, tools):\n    match input:\n        case {'x': int(x), **rest}: return x\n        case _: pass\n",
    b"Sure:\n```python\nfrom math import *\n@d\nclass A(B, metaclass=M):\n    x: int = 1\n    def f(self, /, a, *, b=2): yield a\n```\n",
    b"try:\n    with open('x') as f, g(): pass\nexcept* (E, F) as e:\n    raise X from e\nelse:\n    del a[1:2, ...]\nfinally: global q\n",
    b"f'{x!r:>{w}} {y=}' if (z := 1) else lambda *a, **k: {**k, 'a': [*a]}\nreturn {i: j for i in 'ab' if i async for j in k}",
    b"x = tools.github.issues.list(state='open', nope=1)\nprint(0x_ff, 1e400, 1_0j, b'\\xff', '\\N{BULLET}', r'\\')\nnonlocal_ = not 1",
    b"while True:\n\tif 1: break\n\telse: continue\nassert x, 'y'\n# -*- coding: latin-1 -*-\n\\\n;pass;x",
)
WORDS = b"""await async return yield import export from default function class const let var if else for while of in new this => ...
`${ }` /* */ // # def lambda match case global nonlocal try except finally with as type enum satisfies tools input eval import(
\\u{0} \\ \0 \t \r \r\n ; : , ( ) [ ] { } < > " ' ''' 0x 1e400 1n @ ! ?. ** *, := \xf0\x9f\x98\x80 \xe2\x80\xa8 \xff ``` --- 'use strict'""".split(
    b" "
)


class _Catalog:
    """A catalog of two tools in one source."""

    roots = frozenset({"github"})
    _schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"state": {"enum": ["open", "closed"]}, "number": {"type": "integer"}},
        "additionalProperties": False,
    }

    def find(self, name: str) -> Tool | None:
        known = name in ("github.issues.list", "github.issues.get")
        return Tool(name, "", self._schema) if known else None

    def suggest(self, name: str) -> tuple[str, ...]:
        return ("github.issues.list",)

    def source_problem(self, name: str) -> None:
        """Return nothing: every source is open."""

    def is_namespace(self, name: str) -> bool:
        return name in ("github", "github.issues")


def judge(data: bytes, language: Language, subset: Subset | None = None) -> None:
    """Require a Program with an exact source map whose calls can be checked, or a ProgramError with a position."""
    text = _text(data)
    if language == "typescript" and _is_killed(text):
        return
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            program = prepare(text, language=language, max_code_bytes=64 * 1024, subset=subset)
            _judge_program(program, text)
            check(program, _Catalog())
    except ProgramError as error:
        lines = text.count("\n") + text.count("\r") + 1 + sum(map(text.count, "\u2028\u2029\f\v\x1c\x1d\x1e\x85"))
        if not error.message or (error.line is not None and not 1 <= error.line <= lines):
            raise BrokenPromise(f"{error.message!r} at line {error.line} of {lines}") from error
    if warned:
        raise BrokenPromise(f"the host gets the warning {warned[0].message!r}")


def _is_killed(text: str) -> bool:
    """Return True for a text whose reader would be killed: the parser, which is C, may never end. A fork tries it."""
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
        with contextlib.suppress(BaseException):
            check(prepare(text, language="typescript", max_code_bytes=64 * 1024), _Catalog())
        os._exit(0)
    return os.waitpid(pid, 0)[1] != 0


def _text(data: bytes) -> str:
    """Decode to text that may hold any character, also half a surrogate pair."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _judge_program(program: Program, text: str) -> None:
    if program.source != text:
        raise BrokenPromise("the source differs from the text")
    for span in program.spans:
        here = program.code[span.code : span.code + span.length].replace("\r", "\n")  # both end a line
        there = text[span.source : span.source + span.length].replace("\r", "\n")
        if here != there or len(here) != span.length:
            raise BrokenPromise(f"{span} differs between code and text")
    for line in (1, program.code.count("\n") + 1, 10**6):
        locate(program, line, 1)
    if program.language == "python" and program.entry != "body":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(program.code)


mutate = mutate_tokens(WORDS)
FOLDER = "prepare"
TARGETS = (
    Target("typescript", partial(judge, language="typescript"), mutate, TYPESCRIPT, (FOLDER,)),
    Target("python", partial(judge, language="python"), mutate, PYTHON, (FOLDER,)),
    Target("python-for-monty", partial(judge, language="python", subset=MontySubset()), mutate, PYTHON, (FOLDER,)),
)
