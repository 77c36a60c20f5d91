"""Every text gives a Program that CPython can parse, or a ProgramError; the mapping back to the text is exact."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gloveport.errors import ProgramError
from gloveport.prepare import check, locate, prepare
from gloveport.prepare.diagnostics import LINE_END, line_and_column
from gloveport.types import Program
from tests.prepare.test_properties import Nothing

TWENTY_LINES = '''
import asyncio
import json
from datetime import datetime

CITIES = ["Oslo", "Bergen", "Tromsø"]

async def fetch(city: str) -> dict:
    """One city."""
    weather = await tools.get_weather(city=city, units="metric")
    return {"city": city, "temp": weather["temp"], "at": datetime.now().isoformat()}

results = await asyncio.gather(*(fetch(city) for city in CITIES))
warm = [row for row in results if row["temp"] > 10]
for row in sorted(warm, key=lambda row: -row["temp"]):
    print(f"{row['city']}: {row['temp']:.1f}")
    if row["temp"] > 30:
        await tools.github.issues.create(owner="a", title=f"hot in {row['city']}")
summary = {"count": len(warm), "mean": sum(r["temp"] for r in warm) / max(1, len(warm))}
json.dumps(summary)
'''

WORDS = """
    async def await return yield lambda class if elif else for while in is not and or try except finally with as from
    import global nonlocal del pass break continue raise assert match case None True null f(x) (x) [ ] ( ) { } , : ; .
    = == := -> + - * ** / // % @ ~ < > ! ? $ ` ' " ''' \""" f' f" {x} {x!r} rb' \\ # 1 0x 1_000 1e5 0777 tools main
    tools.x() tools.a.b(c=1) github.x() é 日 😀 “ \u200b \ufeff ``` ```python ```ts ~~~ >>> ... __future__ requests
    json math const => && if(a){ print x"""
BLANKS = [
    "\n",
    "\r",
    "\r\n",
    "\n    ",
    "\n\t",
    "\n  ",
    ":\n    ",
    " ",
    "\t",
    "\0",
    "\f",
    "\u2028",
    "\n```python\n",
    "\n```\n",
]
PIECES = st.sampled_from([*WORDS.split(), *BLANKS])
CODE = st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join)
TEXTS = CODE | st.text(max_size=200) | st.text(st.characters(), max_size=60).map(lambda text: f"hi\n```py\n{text}\n```\n")

LONE_CR = re.compile(r"\r(?!\n)")

REAL = [
    TWENTY_LINES,
    f"Here you are:\n\n```python\n{TWENTY_LINES}```\nThat's it.\n",
    "".join(f"    {line}\n" for line in TWENTY_LINES.splitlines()),
    ">>> import json\n>>> for x in [1]:\n...     print(json.dumps(x))\n...\n1\n>>> await tools.x(a=[1, {'b': None}])\n",
    'async def main(tools):\n    """Doc."""\n    try:\n        return await tools.x()\n    except* KeyError as e:\n        raise\n',
    "match x:\n    case {'a': [1, *rest], **more} if rest: pass\n    case A(b=c) | (1 as c): pass\n",
]


@st.composite
def mutated(draw: Any) -> str:
    """Draw a real program with a few stretches removed, doubled or replaced."""
    text = draw(st.sampled_from(REAL))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(PIECES | st.just("") | st.just(text[start:end] * 2)) + text[end:]
    return text


def assert_exact(program: Program) -> None:
    """Check that spans are sorted, disjoint and unchanged, and that every place in them maps back to its origin."""
    source = LONE_CR.sub("\n", program.source)
    end = source_end = 0
    for span in program.spans:
        assert span.length > 0
        assert span.code >= end
        assert span.source >= source_end
        end, source_end = span.code + span.length, span.source + span.length
        assert LONE_CR.sub("\n", program.code[span.code : end]) == source[span.source : source_end]
        for step in {0, span.length // 2, span.length - 1}:
            if program.code[span.code + step] not in "\r\n":
                line, column = line_and_column(program.code, span.code + step)
                assert locate(program, line, column) == line_and_column(program.source, span.source + step)
                assert line_and_column(program.source, span.source + step)[0] == line
    assert end <= len(program.code)


def assert_answered(text: str) -> None:
    lines = len(LINE_END.findall(text)) + 1
    try:
        program = prepare(text, language="python")
    except ProgramError as error:
        assert error.message
        assert error.frame
        assert error.line is not None
        assert error.column is not None
        assert 1 <= error.line <= lines
        assert error.column >= 1
        error.frame.encode()
        return
    assert program.source == text
    assert program.entry in {"body", "function"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(program.code)
    names = {getattr(node, "name", None) for node in tree.body} | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert program.entry == "body" or "main" in names
    assert_exact(program)
    try:
        check(program, Nothing())
    except ProgramError as error:
        assert error.code == "unknown-tool"
        assert error.line is not None
        assert 1 <= error.line <= lines


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_every_text_gives_a_program_or_a_diagnostic(text: str) -> None:
    assert_answered(text)


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_every_mutation_of_a_real_program_gives_a_program_or_a_diagnostic(text: str) -> None:
    assert_answered(text)


LEFT_TO_THE_GUEST = re.compile(
    "'return' outside function|'return' with value in async generator|.*starred|.*__debug__|.*pattern|.*assignment expression"
    "|too many statically nested blocks|.*in an except\\* block|multiple assignments to name"
)
"""Errors to ignore: top-level `return`, which the guest allows, and errors too rare for a rule of their own."""


@settings(max_examples=200, deadline=None)
@given(mutated())
def test_what_is_prepared_can_be_compiled(text: str) -> None:
    """`prepare` applies the rules of CPython's compiler, so the guest gets nothing that it can't run."""
    try:
        program = prepare(text, language="python")
    except ProgramError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(program.code, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError as error:
            message = error.msg
        else:
            return
    assert LEFT_TO_THE_GUEST.match(message), message
