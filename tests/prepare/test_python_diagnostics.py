"""The diagnostic of a Python program names its place in the agent's own text; nothing of the program is executed."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import prepare

FENCE = "```"


def refusal(text: str) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        prepare(text, language="python")
    error = caught.value
    assert error.frame
    assert error.frame.startswith(f"{error.line} | ")
    assert "^" in error.frame
    return error


# text, line, column, part of the message, part of the hint
SYNTAX: list[tuple[str, int, int, str, str | None]] = [
    ("x = = 2", 1, 5, "unexpected `=`", None),
    ("1 +", 1, 4, "unexpected end of the program", "add the rest"),
    ("@\ndef f(): pass", 1, 2, "unexpected end of the line", None),
    ("if x\n  y = 1", 1, 5, "expected `:`", "colon"),
    ("def f()\n  return 1", 1, 8, "expected `:`", "colon"),
    ("foo(1, 2", 1, 4, "unclosed `(` opened at line 1", "`)`"),
    ("x = 1\ny = [1,\n 2,\nz = 3", 2, 5, "unclosed `[` opened at line 2", "`]`"),
    ("foo(1, 2]", 1, 9, "unexpected `]`; the `(` is not closed", "`)`"),
    ("foo(\n  1, 2]", 2, 7, "the `(` opened at line 1 is not closed", "`)`"),
    ("foo()\n)", 2, 1, "unexpected `)`", "no bracket is open"),
    ("a = 'abc\nfoo()", 1, 5, "unterminated string", "close it with '"),
    ("x = 1\na = f\"abc\nfoo()", 2, 5, "unterminated string", 'close it with "'),
    ('a = """abc\nfoo()', 1, 5, "unterminated triple-quoted string", '"""'),
    ("x = 'it's'", 1, 10, "unterminated string", "ends the string"),
    ('x = "C:\\Users"', 1, 5, "an invalid escape", "backslash"),
    ("x = “hello”", 1, 5, "smart quote “ (U+201C)", 'straight quote: "'),
    ("x = 1\ny = ‘a’", 2, 5, "smart quote ‘", "straight quote: '"),
    ("x = 5 – 3", 1, 7, "unexpected `–` (U+2013)", "write `-`"),
    ("if a ≠ b: pass", 1, 6, "unexpected `≠`", "write `!=`"),
    ("x\u200b = 1", 1, 2, "invisible character U+200B (zero width space)", "delete it"),
    ("x = 1\u00a0", 1, 6, "invisible character U+00A0 (no-break space)", "delete it"),
    ("x = 'a\0b'", 1, 7, "invisible character U+0000", "escape"),
    ("x = '\ud83d'", 1, 6, "half of a surrogate pair", "escape"),
    ("if 1:\nx", 2, 1, "expected an indented block after 'if' statement on line 1", "`pass`"),
    ("def f():\n", 1, 9, "expected an indented block", "`pass`"),
    ("x = 1\n  y = 2", 2, 3, "unexpected indent", "same column"),
    ("if 1:\n    x\n  y", 3, 3, "unindent does not match", "same column"),
    ("if 1:\n\tx\n        y", 3, 1, "tabs and spaces are mixed", "spaces only"),
    ("f'{a b}'", 1, 4, "is a comma missing?", None),
    ("x\n\nz = f'''é\n{x} {a b}\n'''", 4, 6, "is a comma missing?", None),
    ("f(a b)", 1, 3, "is a comma missing?", "comma"),
    ("await tools.x(city='a' units='b')", 1, 20, "is a comma missing?", "comma"),
    ("x = y z", 1, 7, "unexpected `z`", "missing before it"),
    ("x.import(1)", 1, 3, "unexpected `import`", '["import"]'),
    ("class = 1", 1, 7, "unexpected `=`", "`class` is a keyword"),
    ("else:\n  1", 1, 1, "unexpected `else`", "indentation"),
    ("lambda x: return 1", 1, 11, "unexpected `return`", "lambda"),
    ("import *", 1, 8, "unexpected `*`", "from module import *"),
    ("x = 1\\nprint(x)", 1, 6, "unexpected `\\`", "real line end"),
    ("if x = 1:\n  pass", 1, 4, "Maybe you meant '=='", None),
    ("x = 08", 1, 5, "leading zeros", None),
    ("x = 1 + " + "9" * 5000, 1, 9, "more than 4300 digits", "hexadecimal"),
    # Python 2
    ("print 'x'", 1, 1, "`print` needs parentheses", "Python 3"),
    ("exec code", 1, 1, "`exec` needs parentheses", "Python 3"),
    ("raise E, 'x'", 1, 8, "unexpected `,`", "Python 2"),
    ("try:\n  x\nexcept A, e:\n  y", 3, 8, "multiple exception types", "`except A as e:`"),
    ("a <> b", 1, 3, "unexpected `<>`", "write `!=`"),
    # JavaScript
    ("const x = 1;", 1, 7, "unexpected `x`", "JavaScript"),
    ("let y = 2", 1, 5, "unexpected `y`", "JavaScript"),
    ("const f = async () => { return 1 }", 1, 7, "unexpected `f`", "JavaScript"),
    ("xs.map(x => x + 1)", 1, 11, "unexpected `>`", "JavaScript"),
    ("function f() {\n return 1\n}", 1, 10, "unexpected `f`", "JavaScript"),
    ("if x === 1:\n  pass", 1, 8, "unexpected `=`", "write `==` instead of `===`"),
    ("x && y", 1, 4, "unexpected `&`", "write `and`"),
    ("x || y", 1, 4, "unexpected `|`", "write `or`"),
    ("y = !x", 1, 5, "unexpected `!`", "write `not`"),
    ("x++", 1, 4, "unexpected end", "write `+= 1`"),
    ("x ? 1 : 2", 1, 3, "unexpected `?`", "a if condition else b"),
    ("// note\nx = 1", 1, 1, "unexpected `//`", "comments start with `#`"),
    ("x = `a`", 1, 5, "unexpected backtick", "quotes"),
    ("x = null", 1, 5, "there is no `null` in Python", "`None`"),
    ("x = {'a': [true]}", 1, 12, "there is no `true` in Python", "`True`"),
    ("def f():\n    return undefined", 2, 12, "there is no `undefined`", "`None`"),
    # text that is not a program
    ("Here is the code:\nx = 1", 1, 13, "unexpected `code`", "```python fence"),
    ("x = 1\nThis does it well.", 2, 6, "unexpected `does`", "prose"),
    ("<!DOCTYPE html>\n<html></html>", 1, 1, "unexpected `<`", "HTML"),
    ("%pip install requests", 1, 1, "unexpected `%`", "shell"),
    ("x = 1\n!pip install requests", 2, 1, "unexpected `!`", "shell"),
    ("x = 1\n>>> y", 2, 1, "unexpected `>>>`", "prompts"),
    # places in the agent's own text
    (f"Here it is:\n\n{FENCE}python\nx = 1\ny = = 2\n{FENCE}\n", 5, 5, "unexpected `=`", None),
    (f"Prose\r\n{FENCE}python\r\nfoo(\r\n{FENCE}\r\n", 3, 4, "unclosed `(` opened at line 3", "`)`"),
    (f"Do:\n  {FENCE}py\n  x = 1\n  y = = 2\n  {FENCE}", 4, 7, "unexpected `=`", None),
    ("    x = 1\n    y = = 2", 2, 9, "unexpected `=`", None),
    (">>> x = 1\n>>> y = = 2", 2, 9, "unexpected `=`", None),
    ("größe = '日本'\n変数 = = 1", 2, 6, "unexpected `=`", None),
    ("'日本'; x = = 2", 1, 11, "unexpected `=`", None),
    ("\ufeffx = = 2", 1, 6, "unexpected `=`", None),
    ("x = 1\rfoo(]", 2, 5, "unexpected `]`", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), SYNTAX)
def test_a_syntax_error_names_its_place_and_the_way_out(
    text: str, line: int, column: int, message: str, hint: str | None
) -> None:
    error = refusal(text)
    assert error.code == "syntax-error"
    assert (error.line, error.column) == (line, column), (error.message, error.frame)
    assert message in error.message
    assert hint is None or hint in (error.hint or ""), error.hint


# errors that CPython finds only when it compiles
RULES: list[tuple[str, int, int, str, str]] = [
    ("def f():\n    return await g()", 2, 12, "`await` in a function that is not async", "line 1"),
    ("xs.sort(key=lambda x: await f(x))", 1, 23, "`await` in a lambda", "async def"),
    ("class A:\n    x = await f()", 2, 9, "`await` in the body of a class", "before the class"),
    ("async def f():\n    def g():\n        await h()", 3, 9, "`await` in a function", "line 2"),
    ("def f():\n    return [await g(x) for x in y]", 2, 13, "`await` in a function", "line 1"),
    ("def f():\n    async for x in y:\n        pass", 2, 5, "`async for` in a function", "line 1"),
    ("def f():\n    async with x:\n        pass", 2, 5, "`async with` in a function", "line 1"),
    ("def f():\n    return [x async for x in y]", 2, 25, "`async for` in a function", "line 1"),
    ("yield 1", 1, 1, "`yield` outside a function", "emit"),
    ("x = [(yield 1) for x in y]", 1, 7, "`yield` inside a comprehension", "loop"),
    ("async def f():\n    yield from g()", 2, 5, "`yield from` in an async function", "async for"),
    ("class A:\n    return 1", 2, 5, "`return` in the body of a class", "def"),
    ("break", 1, 1, "`break` outside a loop", "return"),
    ("for x in y:\n    def f():\n        continue", 3, 9, "`continue` outside a loop", "return"),
    ("for x in y:\n    pass\nelse:\n    break", 4, 5, "`break` outside a loop", "return"),
    ("nonlocal x", 1, 1, "`nonlocal` at the top level", "delete it"),
    ("n = 0\ndef f():\n    nonlocal n\n    n += 1", 3, 5, "`nonlocal n`: no enclosing function", "`global n`"),
    ("n = 0\ndef f():\n    print(n)\n    global n", 4, 5, "`global n` after the name was used", "before"),
    ("def f(a, a): pass", 1, 10, "the parameter `a` is declared twice", "own name"),
    ("f(a=1, a=2)", 1, 8, "the keyword argument `a` is given twice", "one of them"),
    ("import json\nfrom __future__ import annotations", 2, 1, "`from __future__` after other code", "beginning"),
    ("from __future__ import braces", 1, 24, "no `__future__` feature `braces`", "delete"),
    ("def f():\n    from math import *", 2, 5, "`import *` inside a function", "from math import"),
    ("try:\n    x\nexcept:\n    y\nexcept A:\n    z", 3, 1, "a bare `except:` must be the last clause", "below"),
    (f"Hi\n{FENCE}python\ndef f():\n    é = 'é'; await g()\n{FENCE}", 4, 14, "`await` in a function", "line 3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), RULES)
def test_what_can_not_stand_where_it_stands_is_refused(text: str, line: int, column: int, message: str, hint: str) -> None:
    error = refusal(text)
    assert (error.code, error.line, error.column) == ("syntax-error", line, column), (error.message, error.frame)
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "await f()\nreturn 1",
        "if x:\n    return 1\nawait g()",
        "async with a as b:\n    async for c in d:\n        return [e async for e in c]",
        "x = [await f(y) for y in z]\ny = {a: await b for a in c}",
        "def f():\n    return (await x for x in y)",
        "def f(x=await y): pass",
        "@(await d)\ndef f(): pass",
        "class A(await b): pass",
        "async def f():\n    return [await g(x) for x in y]",
        "async def f():\n    yield await g()",
        "def f():\n    yield 1\n    return 2",
        "lambda: (yield)",
        "while True:\n    if x:\n        break\n    else:\n        continue",
        "for x in y:\n    try:\n        pass\n    finally:\n        break",
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1",
        "def f(n):\n    class A:\n        def g(self):\n            nonlocal n",
        "n = 0\ndef f():\n    global n\n    n += 1",
        "class A:\n    def f(self):\n        return super().f(*a, **b)",
        "f(**a, **b)",
        "null = None\nx = null",
        "def f(true): return true",
        "import json as null\nnull",
        "x.null, {'true': 1}, f(false=1)",
        "try:\n    true\nexcept NameError:\n    true = True",
        "globals()['null'] = None\nnull",
        "async def await_(x): pass",
        "try:\n    x\nexcept* ValueError:\n    y",
    ],
)
def test_what_may_stand_is_left_alone(text: str) -> None:
    assert prepare(text, language="python").code.startswith(text)


# text, line, column of the name, the name in the message, part of the hint
IMPORTS: list[tuple[str, int, int, str, str]] = [
    ("import requests", 1, 8, "`requests`", "use `(await fetch(url)).text()` or `urllib.request`"),
    ("import json, httpx as h", 1, 14, "`httpx`", "use `(await fetch(url)).text()` or `urllib.request`"),
    ("x = 1\nfrom aiohttp import ClientSession", 2, 6, "`aiohttp`", "use `(await fetch(url)).text()` or `urllib.request`"),
    ("import numpy as np", 1, 8, "`numpy`", "approve pypi:numpy"),
    ("from pandas.io import json", 1, 6, "`pandas.io`", "approve pypi:pandas"),
    ("import matplotlib.pyplot as plt", 1, 8, "`matplotlib.pyplot`", "emit"),
    ("import bs4", 1, 8, "`bs4`", "html.parser"),
    ("import yaml", 1, 8, "`yaml`", "tomllib"),
    ("import nest_asyncio", 1, 8, "`nest_asyncio`", "top level"),
    ("from tools import get_weather", 1, 6, "`tools`", "no import"),
    ("import jsn", 1, 8, "did you mean `json`?", "import json"),
    ("import colections", 1, 8, "did you mean `collections`?", "import collections"),
    ("import urllib2", 1, 8, "`urllib2`", "Python 3"),
    ("import acme_internal_things", 1, 8, "`acme_internal_things`", "standard library"),
    ("from . import x", 1, 6, "`.`", "one file"),
    ("from ..a.b import x", 1, 6, "`..a.b`", "one file"),
    ("from \\\n  numpy import x", 2, 3, "`numpy`", "approve pypi:numpy"),
    ("def f():\n    import numpy", 2, 12, "`numpy`", "approve pypi:numpy"),
    ("if x:\n    import numpy", 2, 12, "`numpy`", "approve pypi:numpy"),
    ("try:\n    import numpy\nfinally:\n    pass", 2, 12, "`numpy`", "approve pypi:numpy"),
    ("try:\n    import numpy\nexcept KeyError:\n    pass", 2, 12, "`numpy`", "approve pypi:numpy"),
    ("try:\n    import orjson\nexcept ImportError:\n    import simplejson", 4, 12, "`simplejson`", "json"),
    (f"So:\n{FENCE}python\nimport numpy\n{FENCE}", 3, 8, "`numpy`", "approve pypi:numpy"),
    ("'é'; import numpy", 1, 13, "`numpy`", "approve pypi:numpy"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "named", "hint"), IMPORTS)
def test_an_import_from_outside_the_standard_library_is_refused(
    text: str, line: int, column: int, named: str, hint: str
) -> None:
    error = refusal(text)
    assert (error.code, error.line, error.column) == ("import-refused", line, column), error.message
    assert named in error.message
    assert hint in (error.hint or ""), error.hint


@pytest.mark.parametrize(
    "text",
    [
        "import json, os.path, asyncio as a, xml.etree.ElementTree as ET",
        "from collections import Counter\nfrom concurrent.futures import ThreadPoolExecutor",
        "import socket, subprocess, multiprocessing, threading, ctypes",
        "import __main__, builtins, _socket",
        "from __future__ import annotations\nimport math",
        "try:\n    import numpy as np\nexcept ImportError:\n    np = None",
        "try:\n    import numpy\nexcept (KeyError, ModuleNotFoundError):\n    pass",
        "try:\n    import numpy\nexcept:\n    pass",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import numpy",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy",
        "import importlib\nimportlib.import_module('numpy')\n__import__('numpy')",
        "'import numpy'  # import numpy",
    ],
)
def test_the_standard_library_and_optional_imports_pass(text: str) -> None:
    assert prepare(text, language="python").code == text


CANARIES = [
    "open({path!r}, 'w')",
    "import os; os.mkdir({path!r})",
    "@open({path!r}, 'w').write\ndef f(): pass",
    "def f(x=open({path!r}, 'w')): pass",
    "def f(x: open({path!r}, 'w')) -> open({path!r}, 'w'): pass",
    "x: open({path!r}, 'w') = 1",
    "class A(open({path!r}, 'w').__class__, metaclass=print(open({path!r}, 'w'))):\n    y = open({path!r}, 'w')",
    "(x := open({path!r}, 'w'))",
    "f'''{{open({path!r}, 'w')}}'''",
    "lambda x=open({path!r}, 'w'): x",
    "[open({path!r}, 'w') for _ in [1]]",
    "match open({path!r}, 'w'):\n    case _: pass",
    "type(open({path!r}, 'w'))",
    "import antigravity, this",
    "assert open({path!r}, 'w')",
    "# -*- coding: rot13 -*-\nopen({path!r}, 'w')",
    "async def main(tools=open({path!r}, 'w')): return open({path!r}, 'w')",
    "main = (lambda: open({path!r}, 'w'))()",
]


@pytest.mark.parametrize("text", CANARIES)
def test_preparing_executes_nothing(text: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    loaded = set(sys.modules)
    prepare(text.format(path=str(canary)), language="python")
    assert not canary.exists()
    assert {"antigravity", "this"}.isdisjoint(set(sys.modules) - loaded)


def test_the_hosts_warnings_stay_as_they_were(recwarn: pytest.WarningsRecorder) -> None:
    filters = list(warnings.filters)
    assert prepare(r"'\d' + '\w'" + "\n1if x else 2", language="python")
    refusal(r"'\d' = = 2")
    refusal("1iffy")
    assert list(warnings.filters) == filters
    assert not recwarn.list


def test_size_is_judged_in_bytes_before_anything_else() -> None:
    assert prepare("x" * 100, language="python", max_code_bytes=100)
    for text in ("x" * 101, "é" * 51, "(" * 101):
        with pytest.raises(ProgramError) as caught:
            prepare(text, language="python", max_code_bytes=100)
        assert caught.value.code == "code-too-large"
