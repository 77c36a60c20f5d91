"""Texts made to hang or crash a parser get an answer from the process that reads them, or end it."""

from __future__ import annotations

import pytest

from gloveport.errors import ProgramError
from gloveport.host.program_reader import ProgramReader
from gloveport.prepare import prepare
from tests.prepare.reading import SIZE, outcome

pytestmark = pytest.mark.integration

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
    "a class that never ends, after 40 KB": "x = 1\n" * 7000 + "class<T/*>[[]}A<y>c ",
    "an object with a tail": "{a, b: 1}" + ";" * 50_000 + ")",
}
FINE = {
    "one line of 1 MiB": "'" + "a" * (SIZE - 2) + "'",
    "half a million statements": "x\n" * (SIZE // 2),
    "fences without end": "```\n" * (SIZE // 4),
    "fenced programs": "```ts\n1\n```\n" * 15_000,
    "strings that look like require": '"require(";\n' * 80_000,
    "import.meta": "import.meta;" * 15_000,
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
COMPLEX = {
    # these few characters send tree-sitter into an endless loop, anywhere in a text of any size
    "a class that never ends": "class<T/*>[[]}A<y>c ",
    "80,000 fenced programs": "```ts\n1\n```\n" * 80_000,
}


@pytest.mark.parametrize("name", DEEP)
async def test_deep_nesting_is_refused(reader: ProgramReader, name: str) -> None:
    assert await outcome(reader, DEEP[name], "typescript") == "syntax-error: the program is nested too deeply"


@pytest.mark.parametrize("name", OTHER)
async def test_other_bombs_are_refused(reader: ProgramReader, name: str) -> None:
    assert (await outcome(reader, OTHER[name], "typescript")).startswith(("syntax-error: ", "program-too-complex: "))


@pytest.mark.parametrize("name", FINE)
async def test_large_but_harmless_programs_are_prepared(reader: ProgramReader, name: str) -> None:
    assert await outcome(reader, FINE[name], "typescript") in {"body", "function"}


@pytest.mark.parametrize("name", COMPLEX)
async def test_what_takes_too_long_to_read_is_too_complex(reader: ProgramReader, name: str) -> None:
    assert (await outcome(reader, COMPLEX[name], "typescript")).startswith(
        "program-too-complex: the program is too complex: "
    )


async def test_a_comment_that_is_never_closed_is_named_however_long_the_parser_would_take(reader: ProgramReader) -> None:
    assert await outcome(reader, "/*void " * 2300, "typescript") == "syntax-error: unterminated comment"


def test_five_megabytes_on_one_line_are_refused_unparsed() -> None:
    with pytest.raises(ProgramError) as caught:
        prepare("x=" + "(" * 5_000_000)
    assert caught.value.code == "code-too-large"
