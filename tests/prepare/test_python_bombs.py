"""Python made to hang or crash a parser gets an answer from the process that reads it, or ends it."""

from __future__ import annotations

import pytest

from gloveport.host.program_reader import ProgramReader
from tests.prepare.reading import SIZE, outcome

pytestmark = pytest.mark.integration


def steps(count: int) -> str:
    return "".join(" " * level + "if 1:\n" for level in range(count)) + " " * count + "1"


DEEP = {
    "nested brackets": "[" * 201 + "]" * 201,
    "1,000 open brackets": "(" * 1000,
    "minuses": "-" * 5000 + "1",
    "1,000 minuses": "-" * 1000 + "1",
    "nots": "not " * 3000 + "1",
    "lambdas": "lambda:" * 2000 + "1",
    "lambdas in defaults": "lambda a=" * 1000 + "1" + ":1" * 1000,
    "a sum": "1+" * 2000 + "1",
    "a chain": "a" + ".b" * 5000,
    "a chain of calls": "a" + ".b()" * 1000,
    "subscripts": "a" + "[0]" * 3000,
    "powers": "1**" * 3000 + "1",
    "conditions": "1 if a else " * 1200 + "1",
    "else-ifs": "if a:\n 1\n" + "elif a:\n 1\n" * 1000,
    "indentation": steps(101),
    "names without operators": "a " * 8000,
    "f-strings in f-strings": 'f"{' * 3000,
    "brackets in an f-string": "f'{" + "(" * 3000 + "1" + ")" * 3000 + "}'",
    "dictionaries": "{1:" * 300,
    "walruses": "(a:=" * 300,
}
LONG = {
    "100,000 nested brackets": "[" * 100_000 + "]" * 100_000,
    "a million parentheses": "(" * SIZE,
    "100,000 minuses": "-" * 100_000 + "1",
    "100,000 lambdas": "lambda:" * 100_000 + "1",
    "a long sum": "1+" * 500_000 + "1",
    "1 MiB of a chain": "a" + ".b" * 500_000,
    "comparisons": "a<" * 500_000 + "a",
    "calls": "a" + "()" * 500_000,
    "else-ifs": "if a:\n 1\n" + "elif a:\n 1\n" * 90_000,
    "half a million statements": "x\n" * 500_000,
    "statements on one line": "x;" * 500_000,
    "an indented program": "  x\n" * 250_000,
    "a transcript": ">>> x\n" * 170_000,
    "decorators": "@a\n" * 340_000,
    "assignments": "a=" * 500_000 + "1",
    # compiled, this overflows the stack of CPython 3.11
    "generators": "[x " + "for x in y " * 90_000 + "]",
    "with items": "with " + "a," * 500_000 + "a: pass",
    # this takes minutes and gigabytes
    "a dotted import": "import " + "a." * 500_000 + "a",
    "a dotted import with blanks": "from " + "a . \\\n" * 150_000 + "a import b",
    "an f-string of many expressions": "f'" + "{a}" * 300_000 + "'",
    "an f-string of many lines": "f'''" + "{a}\n" * 200_000 + "'''",
    "a large f-string of many expressions": "f'" + "x" * 600_000 + "{a}" * 2000 + "'",
    "line continuations": "\\\n" * 500_000,
    "backslashes": "\\" * SIZE,
    "stars": "*" * SIZE,
    "quotes": "'" * SIZE,
    "smart quotes": "“" * 300_000,
    "prose": "Here is some text, it's nice. " * 30_000,
    "global": "global a\n" * 100_000,
}
OTHER = {
    "a huge integer": "9" * SIZE,
    "a huge integer with underscores": "1_" * 500_000 + "1",
    "NULs": "\0" * SIZE,
    "an unclosed string": "'''" + "a" * (SIZE - 3),
    "an error after many lines": "\n" * (SIZE - 3) + "= =",
    "an error in 50,000 statements": "x;" * 49_000 + "= =",
    "an error on a long line of other scripts": "'" + "é" * 500_000 + "' = =",
    "blanks before an error": " " * (SIZE - 1) + ")",
    "a fence with a long label": "```" + " " * (SIZE - 4) + "x",
    "names of JavaScript": "null\n" * 45_000,
    "late globals": "def f():\n" + " a;global a\n" * 16_000,
    "nonlocals": "def f():\n" + " nonlocal a\n" * 30_000,
    "refused imports": "import a\n" * 30_000,
}
FINE = {
    "one string of 1 MiB": "'" + "a" * (SIZE - 2) + "'",
    "one name of 1 MiB": "a" * SIZE,
    "one comment of 1 MiB": "#" * SIZE,
    "a long hexadecimal number": "0x" + "f" * (SIZE - 2),
    "a long fraction": "0." + "9" * (SIZE - 2),
    "40,000 numbers": "[" + "123456, " * 40_000 + "]",
    "20,000 statements": "x = 1\n" * 20_000,
    "blanks": " " * SIZE,
    "carriage returns": "\r" * SIZE,
    "form feeds": "\f" * SIZE,
    "fences without end": "```\n" * (SIZE // 4),
    "fenced programs": "```python\n1\n```\n" * 15_000,
    "strings that are never closed": "  '''\n" * 15_000,
    "invalid escapes": "'" + r"\d" * 500_000 + "'",
    "a large f-string": "f'''" + "<p>{a}</p>\n" * 1000 + "'''",
    "200 brackets": "[" * 199 + "]" * 199,
    "99 levels of indentation": steps(99),
    "700 else-ifs": "if a:\n 1\n" + "elif a:\n 1\n" * 700,
    "a sum of 700 terms": "1+" * 700 + "1",
    "powers that nobody computes": "9**9**9**9\n'a' * (1 << 40)",
    "many calls on a line of other scripts": "'é';" + "tools.ping();" * 10_000,
    "names of main": "def main(): pass\n" + "a = 'main'\n" * 20_000,
}


@pytest.mark.parametrize("name", DEEP)
async def test_deep_nesting_is_refused(reader: ProgramReader, name: str) -> None:
    assert await outcome(reader, DEEP[name], "python") == "syntax-error: the program is nested too deeply"


@pytest.mark.parametrize("name", LONG)
async def test_what_takes_too_long_to_read_is_refused_unread(reader: ProgramReader, name: str) -> None:
    assert (await outcome(reader, LONG[name], "python")).endswith("is too long to read")


@pytest.mark.parametrize("name", OTHER)
async def test_other_bombs_get_an_answer(reader: ProgramReader, name: str) -> None:
    assert (await outcome(reader, OTHER[name], "python")).startswith(("syntax-error: ", "import-refused: "))


@pytest.mark.parametrize("name", FINE)
async def test_large_but_harmless_programs_are_prepared(reader: ProgramReader, name: str) -> None:
    assert await outcome(reader, FINE[name], "python") in {"body", "function"}


@pytest.mark.parametrize("name", DEEP)
async def test_deep_nesting_inside_functions_is_refused_too(reader: ProgramReader, name: str) -> None:
    text = "async def f():\n" + "".join(f" {line}\n" for line in DEEP[name].splitlines())
    assert (await outcome(reader, text, "python")).startswith("syntax-error: ")


async def test_an_identifier_of_combining_marks_is_too_complex(reader: ProgramReader) -> None:
    # CPython normalises identifiers, and sorts the marks of one letter in quadratic time.
    marks = "\u0301\u0323" * 40_000
    assert (await outcome(reader, f"a{marks} = 1", "python")).startswith("program-too-complex: ")
