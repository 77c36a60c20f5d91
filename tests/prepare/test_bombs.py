"""Texts made to hang or crash a parser get an answer within seconds, without a recursion error."""

from __future__ import annotations

import os
import time

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import prepare

SIZE = 1 << 20
SECONDS = 30 * float(os.environ.get("GLOVEPORT_TEST_SLOWDOWN", "1"))
"""Far above the measured time (2 s at worst): this bound catches time that explodes."""

DEEP = {
    "100,000 nested brackets": "[" * 100_000 + "]" * 100_000,
    "100,000 open brackets": "[" * 100_000,
    "a million parentheses": "(" * SIZE,
    "nested objects": "{a:" * 300_000,
    "nested objects that crash the parser": "{a:" * 100_000 + "1" + "}" * 100_000,
    "nested templates": "`${" * 150_000 + "1" + "}`" * 150_000,
    "nested arrows": "a=>" * 300_000 + "1",
    "nested conditions": "if(a)" * 150_000 + ";",
    "nested generics": "a<" * 400_000,
    "nested types": "let x:" + "A<" * 400_000,
    "nested calls": "f(" * 400_000,
    "a long sum": "1+" * 500_000 + "1",
    "a long chain": "a" + ".a" * 500_000,
    "nested functions": "function f(){" * 80_000,
    "251 levels": "[" * 251 + "]" * 251,
    "251 arrows": "a=>" * 251 + "1",
}
OTHER = {
    "unclosed arrows": "a=>" * 300_000,
    "unclosed conditions": "if(a)" * 150_000,
    "quotes": "'" * SIZE,
    "strings without commas": "'a'b" * 250_000,
    "brackets and names": "]a" * 500_000,
    "brackets hidden in comments": "{a:/*}*/" * 130_000,
    "brackets hidden behind a regular expression": "if(x)/`/;({a:" * 80_000,
    "angles": "<" * SIZE,
    "tags": "<a>" * 300_000,
    "backslashes": "\\" * SIZE,
    "smart quotes": "“" * 300_000,
    "NULs": "\0" * SIZE,
    "prose": "Here is some text, it's nice. " * 30_000,
    "an unclosed template": "`" + "a" * (SIZE - 1),
    "decorators": "@" * 500_000,
    "labels": "a:" * 500_000,
    # each of these once took quadratic time in a regular expression of prepare
    "a fence with a long label": "```" + " " * (SIZE - 4) + "x",
    "a closing fence with a tail": "```ts\n1\n```" + " " * 900_000 + "x\n```",
    "half-open comments in JSON": "{" + "/" * 60_000 + " (",
    "Python without end": "if\n" * 20_000 + "(",
    "an object with a tail": "{a, b: 1}" + ";" * 50_000 + ")",
}
FINE = {
    "one line of 1 MiB": "'" + "a" * (SIZE - 2) + "'",
    "half a million statements": "x\n" * (SIZE // 2),
    "fences without end": "```\n" * (SIZE // 4),
    "fenced programs": "```ts\n1\n```\n" * 80_000,
    "strings that look like require": '"require(";\n' * 80_000,
    "import.meta": "import.meta;" * 80_000,
    "names of main": "function main(){}\n" + "const a='main';\n" * 60_000,
    "slashes that close nothing": "=/[)" * 200_000 + "\n```ts\n1\n```",
    "blanks": " " * SIZE,
    "carriage returns": "\r" * SIZE,
    "comments": "/**/" * (SIZE // 4),
    "250 levels": "[" * 248 + "]" * 248,
    "900 else-ifs": "if(a);" + "else if(a);" * 900,
    "a chain of 900 calls": "x" + ".a()" * 900,
    "a sum of 1,900 strings": "'a'+" * 1900 + "'b'",
}
LONG = {
    "half a million statements", "brackets and names", "prose", "fences without end", "strings without commas", "quotes",
    "brackets hidden in comments", "labels", "brackets hidden behind a regular expression", "tags", "import.meta",
    "decorators", "fenced programs", "strings that look like require", "backslashes", "names of main",
}  # fmt: skip


def cases(table: dict[str, str]) -> list[object]:
    """Return the names of a table. A text that takes longer than a second makes a long test."""
    return [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in table]


def outcome(text: str) -> str:
    started = time.perf_counter()
    try:
        return prepare(text[:SIZE]).entry
    except ProgramError as error:
        return f"{error.code}: {error.message}"
    finally:
        assert time.perf_counter() - started < SECONDS


@pytest.mark.parametrize("name", cases(DEEP))
def test_deep_nesting_is_refused(name: str) -> None:
    assert outcome(DEEP[name]) == "syntax-error: the program is nested too deeply"


@pytest.mark.parametrize("name", cases(OTHER))
def test_other_bombs_are_syntax_errors(name: str) -> None:
    assert outcome(OTHER[name]).startswith("syntax-error: ")


@pytest.mark.parametrize("name", cases(FINE))
def test_large_but_harmless_programs_are_prepared(name: str) -> None:
    assert outcome(FINE[name]) in {"body", "function"}


def test_five_megabytes_on_one_line_are_refused_unparsed() -> None:
    started = time.perf_counter()
    with pytest.raises(ProgramError) as caught:
        prepare("x=" + "(" * 5_000_000)
    assert caught.value.code == "code-too-large"
    assert time.perf_counter() - started < SECONDS / 10


@pytest.mark.parametrize("size", [0, 2000, 10_000, pytest.param(40_000, marks=pytest.mark.long)])
def test_a_text_with_which_the_parser_never_ends_is_refused(size: int) -> None:
    # These few characters send tree-sitter into an endless loop, anywhere in a text of any size.
    text = "x = 1\n" * (size // 6) + "class<T/*>[[]}A<y>c "
    began = time.thread_time()
    with pytest.raises(ProgramError) as caught:
        prepare(text, language="typescript")
    assert caught.value.code == "syntax-error"
    assert time.thread_time() - began < SECONDS
