"""The diagnostic of a program names its place in the agent's own text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import OptionError, ProgramError
from gloveport.prepare import frame, prepare
from gloveport.prepare.diagnostics import line_bounds
from gloveport.prepare.positions import ENGINE_SEPARATORS

FENCE = "```"

# text, line, column, part of the message, part of the hint
SYNTAX: list[tuple[str, int, int, str, str | None]] = [
    ("const x = ;", 1, 11, "unexpected `;`", None),
    ("const x = 1;\nconst y = = 2;", 2, 11, "unexpected `=`", None),
    ("1 +", 1, 4, "unexpected end of the program", None),
    ("foo(1, 2]\nbar()", 1, 9, "unexpected `]`; the `(` opened at line 1, column 4 is not closed", "`)`"),
    ("function f() {\n  foo(\n}\nbar()", 3, 1, "the `(` opened at line 2, column 6", "`)`"),
    ("if (a) {\n  foo()\n", 1, 8, "unclosed `{` opened at line 1", "`}`"),
    ("const a = [1,\n  2,\n  {b: 3}\n", 1, 11, "unclosed `[` opened at line 1", "`]`"),
    ("let x = `a ${b`;", 1, 15, "unterminated template string", None),
    ("async () => {\n  return 1\n}}", 3, 2, "unexpected `}`", "no bracket is open"),
    ("for (let i = 0; i < 3; i++ {\n  foo()\n}", 1, 28, "unexpected `{`", "the `(` opened at line 1, column 5"),
    ("const s = 'abc\nfoo()", 1, 11, "unterminated string", "on the same line"),
    ("const s = 'abc\nfoo('x')", 1, 11, "unterminated string", "backticks"),
    ("const s = 'a\nb'", 1, 11, "unterminated string", "backticks"),
    ("const s = `abc\nfoo()", 1, 11, "unterminated template string", "backtick"),
    ("foo()\n/* abc", 2, 1, "unterminated comment", "*/"),
    ("})(); evil(); (() => {", 1, 1, "unexpected `}`", "no bracket is open"),
    ("}); evil(); ({", 1, 1, "unexpected `}`", "no bracket is open"),
    ("return 1 }; evil(); {", 1, 10, "unexpected `}`", None),
    ("const x = “hello”;", 1, 11, "smart quote “ (U+201C)", 'straight quote: "'),
    ("const x = ‘hello’;", 1, 11, "smart quote ‘ (U+2018)", "straight quote: '"),
    ("const x = 5 – 3", 1, 13, "unexpected `–`", "write `-`"),
    ("foo()\nx\u200b = 1", 2, 2, "invisible character U+200B (zero width space)", "delete it"),
    ("let x = 1\0", 1, 10, "invisible character U+0000", "delete it"),
    ("let x = 1 # one", 1, 11, "unexpected `#`", "comments start with `//`"),
    ("const a = 'it's';", 1, 15, "unexpected `s`", "ends the string"),
    ("await tools.x({city: 'a' units: 'b'})", 1, 26, "unexpected `units`", "comma"),
    ("const x = 5 const y = 6", 1, 13, "unexpected `const`", None),
    ("def f(x):\n    return x", 1, 5, "unexpected `f`", "Python"),
    ("import json\nprint(f'x')", 2, 1, "", "Python"),
    ("x = 1\nif x is None:\n    x = 2", 2, 4, "unexpected `x`", "Python"),
    ("for x in range(3):\n    print(x)", 1, 5, "unexpected `x`", "Python"),
    ("<!DOCTYPE html>\n<html></html>", 1, 2, "", "HTML"),
    ("const x = <div>hello</div>", 1, 27, "", "JSX"),
    ("Please run this program for me now.", 1, 8, "unexpected `run`", "fence"),
    ('{\n  // the city\n  "city": "x",\n  "n": [1,,}\n}', 4, 12, "unexpected `}`", None),
    (f"Here it is:\n\n{FENCE}ts\nconst x = 1;\nconst y = ;\n{FENCE}\n", 5, 11, "unexpected `;`", None),
    (f"Prose\r\n{FENCE}ts\r\nfoo(\r\n{FENCE}\r\n", 3, 4, "unclosed `(` opened at line 3", "`)`"),
    (f"{FENCE}python\nprint(1)\n{FENCE}", 1, 1, "labelled `python`", "set the language to"),
    (f'Data:\n{FENCE}json\n{{"a": 1}}\n{FENCE}', 2, 1, "labelled `json`", "fence"),
    ("const größe = '日本';\nconst 変数 = ;", 2, 12, "unexpected `;`", None),
    ("function f() { await g() }", 1, 16, "`await` in a function that is not async", "line 1"),
    ("const xs = [1];\nxs.map((x) => {\n  return await f(x);\n})", 3, 10, "`await` in an arrow function", "Promise.all"),
    ("xs.forEach(x => await f(x))", 1, 17, "`await` in an arrow function", "`async`"),
    ("async () => { class A { m() { await 1 } } }", 1, 31, "`await` in a function", "async"),
    ("function f() { for await (const x of y) {} }", 1, 20, "`await` in a function", "async"),
    ("export default 1;\nreturn 2", 2, 1, "can't have a top-level `return`", "inside"),
    ("namespace A { export const x = 1 }\nreturn A.x", 1, 1, "`namespace`", "export default"),
    ("const x = 1;\nexport = x", 2, 1, "`export =`", "export default"),
    ("const x = '\ud83d'", 1, 12, "half of a surrogate pair (\\ud83d)", "escape"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), SYNTAX)
def test_a_syntax_error_names_its_place_and_the_way_out(
    text: str, line: int, column: int, message: str, hint: str | None
) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(text)
    error = caught.value
    assert error.code == "syntax-error"
    assert (error.line, error.column) == (line, column), (error.message, error.frame)
    assert message in error.message
    assert hint is None or hint in (error.hint or ""), error.hint
    assert error.frame
    assert error.frame.startswith(f"{line} | ")
    assert "^" in error.frame
    error.frame.encode()


@pytest.mark.parametrize(
    "text",
    [
        "async function f() { for await (const x of y) {} }",
        "const o = { async m() { await 1 }, f: async () => await 2 }",
        "async () => { class A { [await 1]() {} } }",
        "const f = async function* () { yield await 1 }",
        "// function f() { await x }\n'function f() { await x }'",
        "let o = { await: 1 }; o.await",
    ],
)
def test_await_that_may_stand_is_left_alone(text: str) -> None:
    assert prepare(text).source == text


# text, line, column of the specifier, the name in the message, part of the hint
IMPORTS: list[tuple[str, int, int, str, str]] = [
    ("import fs from 'fs'", 1, 16, "`fs`", "file system"),
    ("const x = 1;\nimport { readFile } from \"node:fs/promises\";", 2, 26, "`node:fs/promises`", "file system"),
    ("import axios from 'axios'", 1, 19, "`axios`", "use `fetch`"),
    ("import 'node-fetch'", 1, 8, "`node-fetch`", "use `fetch`"),
    ("import _ from 'lodash/fp'", 1, 15, "`lodash/fp`", "plain JavaScript"),
    ("import _ from 'npm:lodash@4'", 1, 15, "`npm:lodash@4`", "plain JavaScript"),
    ("import x from '@scope/name'", 1, 15, "`@scope/name`", "platform"),
    ("import x from './helper.ts'", 1, 15, "`./helper.ts`", "one file"),
    ("import x from 'https://deno.land/x.ts'", 1, 15, "`https://deno.land/x.ts`", "network"),
    ("import { tools } from 'tools'", 1, 23, "`tools`", "no import"),
    ("import { type A, b } from 'y'", 1, 27, "`y`", ""),
    ("import fs = require('fs')", 1, 21, "`fs`", "file system"),
    ("export * from 'y'", 1, 15, "`y`", ""),
    ("export { a } from 'y'", 1, 19, "`y`", ""),
    ("await import('child_process')", 1, 14, "`child_process`", "processes"),
    ("await import(name)", 1, 14, "must be a literal", "import("),
    ("await import('a' + b)", 1, 14, "must be a literal", "import("),
    ("await import(`./${name}`)", 1, 14, "must be a literal", "import("),
    ("import /* x */ (\n  `fs`)", 2, 3, "`fs`", "file system"),
    ("const fs = require('fs')", 1, 20, "`fs`", "file system"),
    ("f(() => require(name))", 1, 17, "must be a literal", "import("),
    (f"So:\n{FENCE}ts\nimport fs from 'fs'\n{FENCE}", 3, 16, "`fs`", "file system"),
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "orders = await tools.list(customer='ada')\nsum(o['total'] for o in orders)",
        "w = await tools.weather(city='Oslo')\nf\"{w['sky']}\"",
        "```python\nx = [1, 2]\nif x:\n    print(x)\n```",
        "import json\njson.dumps([1])",
    ],
)
def test_a_python_program_that_was_sent_as_typescript_is_named(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(text)
    error = caught.value
    assert (error.code, error.hint) == ("syntax-error", 'this is Python: set the language to "python"')
    assert error.line is not None and error.frame


@pytest.mark.parametrize("text", ["const x = ;", "# a comment", "return {a: 1", "Please run this for me."])
def test_a_broken_program_is_not_taken_for_python(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(text)
    assert "Python" not in (caught.value.hint or "")


@pytest.mark.parametrize(("text", "line", "column", "named", "hint"), IMPORTS)
def test_an_import_is_refused_at_its_specifier(text: str, line: int, column: int, named: str, hint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        prepare(text)
    error = caught.value
    assert (error.code, error.line, error.column) == ("import-refused", line, column)
    assert named in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "import type { A } from 'y'",
        "import type A from 'y'",
        "import { type A, type B } from 'y'",
        "export type { A } from 'y'",
        "function require(x) { return x }\nrequire('fs')",
        "'require(\"fs\")' // require('fs')",
        "x.require('fs')",
        "obj.import('fs')",
    ],
)
def test_what_only_looks_like_an_import_or_is_erased_passes(text: str) -> None:
    assert "'y'" not in prepare(text).code.replace("import('y').Z", "")


def test_size_is_judged_in_bytes_before_anything_else() -> None:
    assert prepare("x" * 100, max_code_bytes=100)
    for text in ("x" * 101, "é" * 51, "(" * 101, "\ud83d" * 101):
        with pytest.raises(ProgramError) as caught:
            prepare(text, max_code_bytes=100)
        assert caught.value.code == "code-too-large"
        assert "100" in caught.value.message


def test_other_languages_are_refused() -> None:
    with pytest.raises(OptionError, match="no language `ruby`"):
        prepare("1", language="ruby")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "line", "column", "length", "expected"),
    [
        ("abc", 1, 2, 1, "1 | abc\n  |  ^"),
        ("a\nfoo(bar)\nc", 2, 5, 3, "2 | foo(bar)\n  |     ^^^"),
        ("\tx = 1", 1, 2, 1, "1 |  x = 1\n  |  ^"),
        ("a\r\nb\rcd", 3, 2, 1, "3 | cd\n  |  ^"),
        ("日本x", 1, 3, 1, "1 | 日本x\n  |     ^"),
        ("a\u200bb", 1, 3, 1, "1 | a\\u{200b}b\n  |          ^"),
        ("a\u202eb", 1, 2, 1, "1 | a\\u{202e}b\n  |  ^^^^^^^^"),
        ("\x1b[31mx", 1, 1, 1, "1 | \\x1b[31mx\n  | ^^^^"),
        ("abc", 1, 4, 1, "1 | abc\n  |    ^"),
        ("abc", 1, 99, 9, "1 | abc\n  |    ^"),
        ("abc", 7, 1, 1, "7 |\n  | ^"),
        ("", 1, 1, 1, "1 |\n  | ^"),
    ],
)
def test_a_frame_shows_the_line_and_a_caret_below_the_column(
    source: str, line: int, column: int, length: int, expected: str
) -> None:
    assert frame(source, line, column, length) == expected


def test_a_frame_cuts_long_lines_around_the_column() -> None:
    shown = frame("a" * 5000 + "!" + "b" * 5000, 1, 5001)
    first, second = shown.splitlines()
    assert len(first) < 120
    assert first[second.index("^")] == "!"
    assert first.startswith("1 | …a")
    assert first.endswith("b…")


@given(st.text(alphabet="ab\n\r\u2028", max_size=12), st.integers(-1, 14), st.sampled_from(["", ENGINE_SEPARATORS]))
def test_the_bounds_of_a_line_are_those_that_reading_line_by_line_finds(text: str, line: int, separators: str) -> None:
    pieces = re.split(f"\r\n|[\r\n{separators}]", text)
    ends = [found.span() for found in re.finditer(f"\r\n|[\r\n{separators}]", text)]
    starts = [0, *(end for _, end in ends)]
    expected = (starts[line - 1], starts[line - 1] + len(pieces[line - 1])) if 1 <= line <= len(pieces) else None
    assert line_bounds(text, line, separators) == expected
