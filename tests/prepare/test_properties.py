"""Every text gives a Program or a ProgramError, and the mapping back to the text is exact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.errors import ProgramError
from gloveport.prepare import check, locate, prepare
from gloveport.prepare.diagnostics import line_and_column
from gloveport.prepare.positions import ENGINE_LINE_END
from gloveport.types import Program, Tool

WORDS = """
    async () => { } ( ) [ ] ; , . ?. : = == => + ++ - / /* */ // ` ${ ' " \\ < > ! ? @ # _ $ a tools main await return
    const let function class export default import from type interface enum namespace declare if else for of in try
    catch throw new 1 0x 'a' "b" `c` ``` ```ts ```json ~~~ é 日 😀 “ \u200b import.meta import.meta.url require('x')
    using yield static get as satisfies super this null {a:1} {a,b} => <T> </a> #! \ufeff"""
BLANKS = [
    "\n",
    "\r",
    "\r\n",
    "\u2028",
    " ",
    "\t",
    "\0",
    "\n```ts\n",
    "\n```\n",
    "export default ",
    "async function main() {}",
]
PIECES = st.sampled_from([*WORDS.split(), *BLANKS])
CODE = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join)
TEXTS = CODE | st.text(max_size=200) | st.text(st.characters(), max_size=60).map(lambda text: f"hi\n```ts\n{text}\n```\n")


class Nothing:
    roots = frozenset({"github"})

    def find(self, name: str) -> Tool | None:
        return None

    def suggest(self, name: str) -> tuple[str, ...]:
        return ()

    def source_problem(self, name: str) -> None:
        return None

    def is_namespace(self, name: str) -> bool:
        return False


def assert_exact(program: Program) -> None:
    """Check that spans are sorted, disjoint and unchanged, and that every place in them maps back to its origin."""
    program.code.encode()
    end = source_end = 0
    for span in program.spans:
        assert span.length > 0
        assert span.code >= end
        assert span.source >= source_end
        end, source_end = span.code + span.length, span.source + span.length
        assert program.code[span.code : end] == program.source[span.source : source_end]
        for step in {0, span.length // 2, span.length - 1}:
            if program.code[span.code + step] not in "\r\n\u2028\u2029":
                line, column = engine_place(program.code, span.code + step)
                assert locate(program, line, column) == line_and_column(program.source, span.source + step)
    assert end <= len(program.code)


def engine_place(code: str, offset: int) -> tuple[int, int]:
    """Return V8's line and column (UTF-16 units) of an offset, counted character by character."""
    line, start = 1, 0
    for line_end in ENGINE_LINE_END.finditer(code):
        if line_end.end() > offset:
            break
        line, start = line + 1, line_end.end()
    return line, len(code[start:offset].encode("utf-16-le")) // 2 + 1


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_every_text_gives_a_program_or_a_diagnostic(text: str) -> None:
    try:
        program = prepare(text)
    except ProgramError as error:
        assert error.message
        assert error.line is not None
        assert error.column is not None
        assert 1 <= error.line <= text.count("\n") + text.count("\r") + 1
        assert error.column >= 1
        assert error.frame
        return
    assert program.source == text
    assert_exact(program)
    try:
        check(program, Nothing())
    except ProgramError as error:
        assert error.code == "unknown-tool"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("x\ny", 1, 1, (1, 1)),
        ("x\ny", 2, 1, (2, 1)),
        ("x;\ny;\nz()", 2, 1, (2, 1)),
        ("x;\ny;\nz()", 3, 9, (3, 1)),
        ("x;\ny;\nz()", 3, 11, (3, 3)),
        ("x;\ny;\nz()", 3, 12, None),
        ("x;\ny;\nz()", 4, 1, None),
        ("x;\ny;\nz()", 9, 1, None),
        ("x;\ny;\nz()", 0, 1, None),
        ("x;\ny;\nz()", 2, 99, None),
        ("const s = '😀'; f()", 1, 53, (1, 16)),
        ("a;\r\nb;\rc;\u2028d; f()", 4, 12, (3, 7)),
    ],
)
def test_a_place_in_the_engine_leads_back_to_the_text(
    text: str, line: int, column: int, expected: tuple[int, int] | None
) -> None:
    assert locate(prepare(text), line, column) == expected


@pytest.mark.parametrize(
    "text", ["a;\nb;\nc", "Hi\n\n```ts\na;\nb\n```\nbye", "export default 1", "import type A from 'x'\nb"]
)
def test_lines_keep_their_numbers(text: str) -> None:
    program = prepare(text)
    code, source = program.code.split("\n"), text.split("\n")
    for number, line in enumerate(source):
        if line in {"a;", "b;"}:
            assert line in code[number]
    assert len(code) - len(source) in {0, 1}
