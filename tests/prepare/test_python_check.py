"""Names and arguments of a Python program's tool calls are checked before it runs; only certain errors are refused."""

from __future__ import annotations

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import check, prepare
from tests.prepare.test_check import TOOLS, Catalog

FENCE = "```"

UNKNOWN: list[tuple[str, int, int, str]] = [
    ("await tools.get_wether(city='x')", 1, 13, "no tool `tools.get_wether`; did you mean `tools.get_weather`?"),
    ("x = 1\nawait codemode.nope()", 2, 16, "no tool `codemode.nope`"),
    ("tools['get_wether']()", 1, 7, "did you mean `tools.get_weather`?"),
    ("tools.github.issue.create()", 1, 14, "did you mean `tools.github.issues.create` or `tools.github.issues.list`?"),
    ("github.issue.create()", 1, 8, "no tool `github.issue.create`; did you mean `github.issues.create`"),
    ("github.issues.remove()", 1, 15, "no tool `github.issues.remove`"),
    ("async def main(tools):\n    return await tools.nope()", 2, 24, "no tool `tools.nope`"),
    ("def main(input, tools): return tools.nope()", 1, 38, "no tool `tools.nope`"),
    ("async def go(tools): return await tools.nope()", 1, 41, "no tool `tools.nope`"),
    ("main = lambda tools: tools.nope()", 1, 28, "no tool `tools.nope`"),
    (f"Run\n{FENCE}python\né = '😀'; await tools.nope()\n{FENCE}", 3, 22, "no tool `tools.nope`"),
    ("try:\n    tools.ping()\nexcept Exception: pass\ntools.nope()", 4, 7, "no tool `tools.nope`"),
    ("try:\n    tools.nope()\nfinally: pass", 2, 11, "no tool `tools.nope`"),
    ("await asyncio.gather(tools.nope(), tools.ping())", 1, 28, "no tool `tools.nope`"),
    ("[tools.nope(x) for x in y]", 1, 8, "no tool `tools.nope`"),
    ("f(a=[{'x': await tools.nope()}])", 1, 24, "no tool `tools.nope`"),
    ("(tools\n  .nope)()", 2, 4, "no tool `tools.nope`"),
    ("tools.b()\ntools.a()", 1, 7, "no tool `tools.b`"),
    ("    x = 1\n    tools.nope()", 2, 11, "no tool `tools.nope`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message"), UNKNOWN)
def test_an_unknown_tool_is_named_at_its_property(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(prepare(text, language="python"), Catalog())
    error = caught.value
    assert (error.code, error.line, error.column) == ("unknown-tool", line, column), error.message
    assert message in error.message
    assert error.tool
    assert "search" in (error.hint or "")
    assert f"{line} | " in (error.frame or "")


BAD: list[tuple[str, int, int, str, str]] = [
    ("tools.get_weather(city='x', unit='metric')", 1, 29, "no parameter `unit`; did you mean `units`?", "city, units?, days?"),
    ("tools.get_weather({'city': 'x', 'unit': 'metric'})", 1, 33, "no parameter `unit`; did you mean `units`?", "city"),
    ("tools.get_weather(units='metric')", 1, 7, "needs `city`, which is missing", "city"),
    ("github.issues.create()", 1, 15, "needs `owner` and `title`, which are missing", "body?"),
    ("tools.get_weather({})", 1, 7, "needs `city`", "city"),
    ("tools.get_weather(city=5)", 1, 24, "takes a string as `city`, not the number 5", "string"),
    ("tools.get_weather(city='x', days='two')", 1, 34, "takes an integer as `days`, not the string 'two'", "integer"),
    ("tools.get_weather(city='x', days=1.5)", 1, 34, "takes an integer as `days`", "integer"),
    ("tools.get_weather(city='x', days=True)", 1, 34, "not the boolean True", "integer"),
    ("tools.get_weather(city=None)", 1, 24, "takes a string as `city`, not None", "string"),
    ("tools.get_weather(city=[1])", 1, 24, "not the array [1]", "string"),
    ("tools.get_weather(city={'a': 1})", 1, 24, "not the object {'a': 1}", "string"),
    ("tools.get_weather(city='x', days=f'{n}')", 1, 34, "not the string f'{n}'", "integer"),
    ("tools.get_weather(city='x', units='metrik')", 1, 35, "does not accept 'metrik' as `units`", '"metric"'),
    ("tools.get_weather(5)", 1, 19, "takes a string as `city`", "string"),
    ("tools.get_weather('x', 'metric', 1, 2)", 1, 37, "takes at most 3 arguments, not 4", "city"),
    ("tools.get_weather('x', unit='metric')", 1, 24, "no parameter `unit`", "units"),
    ("tools.get_weather('x', city='y')", 1, 24, "gets `city` twice, by position and by keyword", "units"),
    ("tools.get_weather({'city': 'x'}, days=2)", 1, 19, "takes a string as `city`, not the object", "type string"),
    ("tools.get_weather('x', 'metric', 2, 3, days=1)", 1, 37, "takes at most 3 arguments, not 4", "units"),
    ("tools.ping(1)", 1, 12, "takes no arguments, not 1", "no parameters"),
    ("tools.ping(x=1)", 1, 12, "has no parameter `x`", "no parameters"),
    ("tools.local.get_weather(town='x')", 1, 25, "`tools.local.get_weather` has no parameter `town`", "city"),
    ("tools['ns:tool'](x='1')", 1, 20, "takes a number as `x`", "number"),
    ("tools.open(name=5)", 1, 17, "takes a null or string as `name`", "string"),
    ("p = [\n  'é', tools.get_weather(\n    citi='x'),\n]", 3, 5, "did you mean `city`?", "city"),
    ("x = 'é'; tools.get_weather(city=5)", 1, 33, "not the number 5", "string"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), BAD)
def test_bad_arguments_are_named_at_their_place(text: str, line: int, column: int, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(prepare(text, language="python"), Catalog())
    error = caught.value
    assert (error.code, error.line, error.column) == ("bad-arguments", line, column), error.message
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.tool in {tool.address for tool in TOOLS.values()}


@pytest.mark.parametrize(
    "text",
    [
        "await tools.get_weather(city='x')",
        "tools.get_weather({'city': city, 'units': 'metric', 'days': 2})",
        "tools.get_weather('x')",
        "tools.get_weather('x', 'metric')",
        "tools.get_weather('x', units='metric')",
        "tools.get_weather(args)",
        "tools.get_weather(*args)",
        "tools.get_weather(**kwargs)",
        "tools.get_weather(units='metric', **kwargs)",
        "tools.get_weather(args, units='metric')",
        "tools.get_weather({**rest})",
        "tools.get_weather({key: 1})",
        "tools.get_weather(city=name, days=n + 1)",
        "tools.get_weather(city=f'{x}', days=-1)",
        "tools.get_weather(city='x', days=2.0)",
        "tools.get_weather(city='x', days=0x10)",
        "tools.ping(); tools.ping({})",
        "tools.save(record={}); tools.save({'a': 1})",
        "tools.open(other=1); tools.open('x')",
        "tools.any(y=1); tools.any()",
        "tools['ns:tool'](x=1)",
        "github.issues.create(owner='a', title='b')",
        "tools.search('x'); tools.describe('y'); tools.sources(); tools.run(); tools.snippets.list()",
        "tools.executor.sources.list()",
        "tools.__getToolInterface('x'); tools.__class__(); tools.github.__dir__()",
        "tools.get_weather(city='x').close()",
        "if hasattr(tools, 'nope'):\n    tools.nope()",
        "if hasattr(tools.github, 'nope'):\n    tools.github.nope()",
        "if getattr(tools, 'nope', None):\n    tools.nope()",
        "if 'nope' in dir(tools):\n    tools.nope()",
        "f = tools.nope\ntools.nope()",
        "getattr(tools, 'nope')()",
        "try:\n    await tools.nope()\nexcept Exception as e:\n    print(e)",
        "try:\n    for x in y:\n        f(lambda: tools.nope())\nexcept* ToolError:\n    pass",
        "import contextlib\nwith contextlib.suppress(Exception):\n    tools.nope()",
        "await asyncio.gather(tools.nope(), *[tools.nope()], return_exceptions=True)",
        "tools[name](); tools[0](); tools['a' + b]()",
        "tools.import_(); tools.github.class_()",
        "tools = {}\ntools.nope()",
        "def f(tools): return tools.nope()\nf({})",
        "x, tools = y\ntools.nope()",
        "for tools in xs: tools.nope()",
        "with x as tools: tools.nope()",
        "try: f()\nexcept E as tools: tools.nope()",
        "class tools: pass\ntools.nope()",
        "import json as tools\ntools.nope()",
        "[tools.nope() for tools in x]",
        "match x:\n    case [*tools]: tools.nope()",
        "(tools := x).nope(); tools.nope()",
        "async def main(a, b, tools): return tools.nope()",
        "async def main(tools):\n    tools = x\n    return tools.nope()",
        "github = make()\ngithub.nope()",
        "other.nope(); nope(); x.tools.nope()",
        "'tools.nope()'  # tools.nope()",
        "async def main(other): return other.nope()",
    ],
)  # fmt: skip
def test_what_is_right_or_not_certain_passes(text: str) -> None:
    check(prepare(text, language="python"), Catalog())
