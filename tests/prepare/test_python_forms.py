"""Python programs do what the agent meant, in every form: each runs here by the guest's contract."""

from __future__ import annotations

import ast
import asyncio
import inspect
import warnings
from types import FunctionType
from typing import Any

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import locate, prepare
from gloveport.types import Program

FENCE = "```"


async def run(program: Program) -> Any:
    """Return the result of a program: the trailing expression of a body, or the result of `main`. (No top-level `return`.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(program.code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and program.entry == "body" else None
    space: dict[str, Any] = {"__name__": "__main__", "tools": "TOOLS"}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    codes = [compile(tree, "<program>", "exec", flags, dont_inherit=True)]
    if isinstance(last, ast.Expr):
        codes.append(compile(ast.Expression(last.value), "<program>", "eval", flags, dont_inherit=True))
    value: Any = None
    for code in codes:
        value = FunctionType(code, space)()
        if code.co_flags & inspect.CO_COROUTINE:
            value = await value
    if program.entry == "function":
        main = space["main"]
        value = main(*[space["tools"]][: len(inspect.signature(main).parameters)])
    return await value if inspect.isawaitable(value) else value


# text, result of the run, entry
FORMS: dict[str, tuple[str, Any, str]] = {
    "an empty program": ("", None, "body"),
    "only blanks": ("  \n\t\n", None, "body"),
    "only comments": ("# nothing\n  # at all", None, "body"),
    "a docstring": ('"""Nothing."""', "Nothing.", "body"),
    "a trailing expression": ("x = 2\nx * 2", 4, "body"),
    "a trailing expression before comments": ("x = 2\nx * 2  # twice\n# done\n", 4, "body"),
    "a trailing expression with a semicolon": ("x = 2; x * 2;", 4, "body"),
    "a trailing await": ("import asyncio\nawait asyncio.sleep(0, 7)", 7, "body"),
    "statements without a value": ("x = 1", None, "body"),
    "an if at the end has no value": ("if True:\n    5", None, "body"),
    "async main": ("async def main():\n    return 1", 1, "function"),
    "main that is not async": ("def main():\n    return 1", 1, "function"),
    "main with tools": ("async def main(tools):\n    return tools", "TOOLS", "function"),
    "main after imports, constants and helpers": (
        '"""Doc."""\nfrom __future__ import annotations\nimport json\n\nN: int = 2\nM = [N]\n\nclass A:\n    pass\n\n'
        "def twice(x):\n    return x * N\n\nasync def main():\n    return twice(4)\n",
        8,
        "function",
    ),
    "main before helpers": ("def main():\n    return f()\ndef f():\n    return 3", 3, "function"),
    "main that calls itself": ("def main(n=2):\n    return n if n in (0, 'TOOLS') else main(n - 1)", "TOOLS", "function"),
    "main in a lambda": ("main = lambda tools: tools", "TOOLS", "function"),
    "main after an optional import": ("try:\n    import numpy\nexcept ImportError:\n    numpy = None\ndef main(): return 2", 2, "function"),
    "main that is called at the end": ("async def main():\n    return 5\nawait main()", 5, "body"),
    "main that is mentioned at the end": ("def main():\n    return 5\nx = main()\nx + 1", 6, "body"),
    "main beside other statements": ("def main():\n    return 5\nfor x in []:\n    pass", None, "body"),
    "main before a trailing string": ("def main():\n    return 5\n'done'", "done", "body"),
    "a lone function of another name": ("async def run(tools):\n    return tools", "TOOLS", "function"),
    "a lone function after imports": ("import json\n\ndef go():\n    return json.dumps([1])", "[1]", "function"),
    "a lone function that is called": ("def go():\n    return 4\ngo()", 4, "body"),
    "a lone function in a comment's company": ("# go!\ndef go():\n    return 4\n# done", 4, "function"),
    "two functions, none called main": ("def f():\n    pass\ndef g():\n    pass", None, "body"),
    "a decorated main": ("import functools\n@functools.cache\ndef main():\n    return 6", 6, "function"),
    "a fence": (f"{FENCE}python\n20 + 1\n{FENCE}", 21, "body"),
    "a fence in prose": (f"Here's it:\n\n{FENCE}py\nx = 21\nx\n{FENCE}\nIt's done; that's all.", 21, "body"),
    "a fence labelled in capitals": (f"{FENCE}Python\n22\n{FENCE}", 22, "body"),
    "a fence labelled python3": (f"{FENCE}python3\n22\n{FENCE}", 22, "body"),
    "a fence without a label": (f"So:\n{FENCE}\n23\n{FENCE}", 23, "body"),
    "a fence of tildes": ("~~~python\n24\n~~~", 24, "body"),
    "a fence left open": (f"Run:\n{FENCE}python\n25", 25, "body"),
    "a fence closed on its last line": (f"{FENCE}python\n25{FENCE}", 25, "body"),
    "a fence on one line": (f"{FENCE}py 20 + 6{FENCE}", 26, "body"),
    "a fence with CRLF": (f"Run:\r\n{FENCE}python\r\nx = 27\r\nx\r\n{FENCE}\r\n", 27, "body"),
    "a fence with lone CRs": (f"Run:\r{FENCE}python\rx = 27\rx\r{FENCE}\r", 27, "body"),
    "several fences": (f"First\n{FENCE}python\nx = 1\n{FENCE}\nthen\n{FENCE}python\nx + 27\n{FENCE}", 28, "body"),
    "fences of other languages": (f"{FENCE}bash\nrm -rf /\n{FENCE}\n{FENCE}python\n29\n{FENCE}\n{FENCE}ts\nlet x\n{FENCE}", 29, "body"),
    "a fence of main": (f"Run:\n{FENCE}python\nasync def main(tools):\n    return 30\n{FENCE}", 30, "function"),
    "a string that holds a fence": (f'md = """\n{FENCE}python\nevil()\n{FENCE}\n"""\nlen(md)', 22, "body"),
    "a docstring that holds a fence": (f"def f():\n    '''Try:\n    {FENCE}python\n    evil()\n    {FENCE}\n    '''\n31", 31, "body"),
    "a fence with a fence in a string": (f'{FENCE}python\nmd = """\n{FENCE}\nx\n{FENCE}\n"""\nlen(md)\n{FENCE}\n', 11, "body"),
    "an indented fence": (f"1. Do:\n\n   {FENCE}python\n   if True:\n       x = 32\n   x\n   {FENCE}\n", 32, "body"),
    "an indented program": ("\n    x = 1\n    if x:\n        x = 33\n\n    x\n", 33, "body"),
    "a program indented by tabs": ("\tx = 34\n\tx", 34, "body"),
    "an indented program with a comment at the margin": ("# first\n    x = 34\n# then\n    x", 34, "body"),
    "an indented program with a string that is indented too": ("    x = '''a\n    b'''\n    x", "a\nb", "body"),
    "an indented program with a string that is not": ("    x = '''a\nb'''\n    x", "a\nb", "body"),
    "a transcript": (">>> x = 1\n>>> x + 1\n2\n>>> x + 34", 35, "body"),
    "a transcript with a block": (">>> for x in [1, 2]:\n...     y = x\n...\n1\n2\n>>> y + 34\n36\n", 36, "body"),
    "a transcript in a fence": (f"See:\n{FENCE}pycon\n>>> 1 + 36\n37\n{FENCE}", 37, "body"),
    "a byte order mark": ("\ufeffx = 38\nx", 38, "body"),
    "a byte order mark before an indented program": ("\ufeff  x = 38\n  x", 38, "body"),
    "a hashbang and a coding line": ("#!/usr/bin/env python\n# -*- coding: latin-1 -*-\n'é'", "é", "body"),
    "names in other scripts": ("größe = 39\ngröße", 39, "body"),
    "a lone function with a name in another script": ("def größe():\n    return 39", 39, "function"),
    "an invalid escape": (r"'\d'", r"\d", "body"),
    "a number right before a word": ("1if True else 2", 1, "body"),
    "async comprehensions": ("async def g():\n    yield 40\n[x async for x in g()][0]", 40, "body"),
    "match": ("match {'a': 41}:\n    case {'a': x}:\n        pass\nx", 41, "body"),
    "walrus": ("(x := 42)", 42, "body"),
    "import *": ("from math import *\nfloor(43.5)", 43, "body"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_its_value(name: str) -> None:
    text, value, entry = FORMS[name]
    program = prepare(text, language="python")
    assert program.entry == entry
    assert (program.language, program.dialect, program.source) == ("python", "python", text)
    assert asyncio.run(run(program)) == value, program.code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        (f"Prose\n{FENCE}python\nx = 1\n{FENCE}\nmore\n", "\n\nx = 1\n\n\n"),
        (f"A\n{FENCE}py\nx\n{FENCE}\n{FENCE}json\n1\n{FENCE}\n{FENCE}py\ny\n{FENCE}", "\n\nx\n\n\n\n\n\ny\n"),
        ("  x = 1\n\n  y", "x = 1\n\ny"),
        (">>> x = 1\n>>> x\n1\n", "x = 1\nx\n\n"),
        ("def go(): pass", "def go(): pass\nmain = go\n"),
        ("def main(): pass", "def main(): pass"),
    ],
)
def test_what_is_no_code_becomes_empty_lines(text: str, code: str) -> None:
    assert prepare(text, language="python").code == code


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ("x\ny = z", 2, 5, (2, 5)),
        ("x\ny = z", 2, 6, None),
        ("x\ny = z", 3, 1, None),
        ("x", 0, 1, None),
        ("x", 1, 0, None),
        ("s = '😀'; f()", 1, 10, (1, 10)),
        ("a\r\nb\rc; d", 3, 4, (3, 4)),
        ("a = '\u2028'; b", 1, 10, (1, 10)),
        (f"Hi\n{FENCE}python\nx = 1\n  \ny\n{FENCE}", 3, 5, (3, 5)),
        (f"Hi\n{FENCE}python\nx = 1\n{FENCE}", 1, 1, None),
        ("   x = 1\n   y = 2", 2, 5, (2, 8)),
        (">>> x = 1\n>>> y", 2, 1, (2, 5)),
        (f"{FENCE}py x + y{FENCE}", 1, 5, (1, 11)),
        ("def go(): pass", 2, 1, None),
        ("\ufeffx = y", 1, 5, (1, 6)),
    ],
)  # fmt: skip
def test_a_place_in_the_guest_leads_back_to_the_text(
    text: str, line: int, column: int, expected: tuple[int, int] | None
) -> None:
    assert locate(prepare(text, language="python"), line, column) == expected


@pytest.mark.parametrize(
    ("label", "hint"),
    [("ts", 'language="typescript"'), ("JavaScript", 'language="typescript"'), ("bash", "label"), ("json", "label")],
)
def test_a_fence_of_another_language_is_not_a_program(label: str, hint: str) -> None:
    with pytest.raises(ProgramError, match="labelled") as caught:
        prepare(f"So:\n{FENCE}{label}\nx\n{FENCE}", language="python")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_last_expression_below_the_main_guard_is_the_result(quote: str) -> None:
    text = f"async def main():\n    return 5\n\nif __name__ == {quote}__main__{quote}:\n    print(1)\n    asyncio.run(main())\n"
    program = prepare(text, language="python")
    assert program.code.splitlines()[-1] == "    return asyncio.run(main())"
    assert locate(program, 6, 12) == (6, 5)


@pytest.mark.parametrize(
    "end",
    [
        "if __name__ == '__main__':\n    x = 1",
        "if __name__ == '__main__':\n    f()\nelse:\n    g()",
        "if __name__ == '__main__':\n    f()\nx = 1",
        "if __name__ == 'main':\n    f()",
        "if name == '__main__':\n    f()",
    ],
)
def test_no_other_block_gives_a_result(end: str) -> None:
    assert "return" not in prepare(end, language="python").code
