"""Names and arguments of tool calls are checked before a program runs; only certain errors are refused."""

from __future__ import annotations

from typing import Any

import pytest

from gloveport.errors import ProgramError
from gloveport.prepare import check, prepare
from gloveport.types import Tool

FENCE = "```"


def tool(address: str, required: tuple[str, ...] = (), *, more: bool = False, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": more}
    return Tool(address, "", schema)


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = {
    "get_weather": tool(
        "local.get_weather",
        ("city",),
        city=STRING,
        units={"enum": ["metric", "imperial"], "type": "string"},
        days=INTEGER,
    ),
    "ping": tool("local.ping"),
    "save": tool("local.save", ("record",), record={"type": "object"}),
    "list": tool("local.list", status={"enum": ["open", "paid"]}, page=INTEGER),
    "open": tool("local.open", more=True, name={"type": ["string", "null"]}),
    "any": Tool("local.any", "", {"$ref": "#/$defs/X", "required": ["x"]}),
    "github.issues.create": tool("github.issues.create", ("owner", "title"), owner=STRING, title=STRING, body=STRING),
    "ns:tool": tool("ns.tool", ("x",), x={"type": "number"}),
}


class Catalog:
    roots = frozenset({"github"})

    def find(self, name: str) -> Tool | None:
        return TOOLS.get(name.removeprefix("local."))

    def suggest(self, name: str) -> tuple[str, ...]:
        known = {"get_wether": ("get_weather",), "github.issue.create": ("github.issues.create", "github.issues.list")}
        return known.get(name, ())

    def source_problem(self, name: str) -> None:
        return None

    def is_namespace(self, name: str) -> bool:
        return name in {"local", "github", "github.issues"}


UNKNOWN: list[tuple[str, int, int, str]] = [
    ("await tools.get_wether({})", 1, 13, "no tool `tools.get_wether`; did you mean `tools.get_weather`?"),
    ("1;\nawait codemode.nope()", 2, 16, "no tool `codemode.nope`"),
    ("tools['get_wether']({})", 1, 7, "did you mean `tools.get_weather`?"),
    ("tools.github.issue.create({})", 1, 14, "did you mean `tools.github.issues.create` or `tools.github.issues.list`?"),
    ("github.issue.create({})", 1, 8, "no tool `github.issue.create`; did you mean `github.issues.create`"),
    ("github.issues.remove({})", 1, 15, "no tool `github.issues.remove`"),
    ("async (tools) => tools.nope()", 1, 24, "no tool `tools.nope`"),
    ("async tools => tools.nope()", 1, 22, "no tool `tools.nope`"),
    ("async (input, tools: any) => tools.nope()", 1, 36, "no tool `tools.nope`"),
    ("async ({ tools }) => tools.nope()", 1, 28, "no tool `tools.nope`"),
    ("async function main(tools) { return tools.nope() }", 1, 43, "no tool `tools.nope`"),
    ("const main = async (tools) => tools.nope()", 1, 37, "no tool `tools.nope`"),
    ("export default async function (tools) { return tools.nope() }", 1, 54, "no tool `tools.nope`"),
    (f"Run\n{FENCE}ts\nconst é = '😀'; await tools.nope()\n{FENCE}", 3, 28, "no tool `tools.nope`"),
    ("try { tools.ping() } catch {}\ntools.nope()", 2, 7, "no tool `tools.nope`"),
    ("xs.map((x) => tools!.nope(x))", 1, 22, "no tool `tools.nope`"),
    ("const a = { x: await tools.nope() }", 1, 28, "no tool `tools.nope`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message"), UNKNOWN)
def test_an_unknown_tool_is_named_at_its_property(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(prepare(text), Catalog())
    error = caught.value
    assert (error.code, error.line, error.column) == ("unknown-tool", line, column)
    assert message in error.message
    assert error.tool
    assert "search" in (error.hint or "")
    assert error.frame
    assert f"{line} | " in error.frame


BAD: list[tuple[str, int, int, str, str]] = [
    ("tools.get_weather({ city: 'x', unit: 'metric' })", 1, 32, "no parameter `unit`; did you mean `units`?", "city, units?, days?"),
    ("tools.get_weather({ units: 'metric' })", 1, 7, "needs `city`, which is missing", "city"),
    ("github.issues.create({})", 1, 15, "needs `owner` and `title`, which are missing", "body?"),
    ("tools.get_weather()", 1, 7, "needs `city`", "city"),
    ("tools.get_weather({ city: 5 })", 1, 27, "takes a string as `city`, not the number 5", "string"),
    ("tools.get_weather({ city: 'x', days: 'two' })", 1, 38, "takes an integer as `days`, not the string 'two'", "integer"),
    ("tools.get_weather({ city: 'x', days: 1.5 })", 1, 38, "takes an integer as `days`", "integer"),
    ("tools.get_weather({ city: null })", 1, 27, "not null", "string"),
    ("tools.get_weather({ city: [] })", 1, 27, "not the array", "string"),
    ("tools.get_weather({ city: 'x', units: 'metrik' })", 1, 39, "does not accept 'metrik' as `units`", '"metric"'),
    ("tools.get_weather(5)", 1, 19, "takes a string as `city`", "string"),
    ("tools.get_weather('x', 'metric', 1, 2)", 1, 37, "takes at most 3 arguments, not 4", "city"),
    ("tools.ping(1)", 1, 12, "takes no arguments, not 1", "no parameters"),
    ("tools.ping({ x: 1 })", 1, 14, "has no parameter `x`", "no parameters"),
    ("tools.list({ statuss: 'open' })", 1, 14, "no parameter `statuss`; did you mean `status`?", "status?, page?"),
    ("tools.local.get_weather({ town: 'x' })", 1, 27, "`tools.local.get_weather` has no parameter `town`", "city"),
    ("tools['ns:tool']({ x: '1' })", 1, 23, "takes a number as `x`", "number"),
    ("tools.open({ name: 5 })", 1, 20, "takes a null or string as `name`", "string"),
    ("const p = [\n  tools.get_weather({\n    citi: 'x' }),\n]", 3, 5, "did you mean `city`?", "city"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), BAD)
def test_bad_arguments_are_named_at_their_place(text: str, line: int, column: int, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        check(prepare(text), Catalog())
    error = caught.value
    assert (error.code, error.line, error.column) == ("bad-arguments", line, column), error.message
    assert message in error.message
    assert hint in (error.hint or "")
    assert error.tool in {tool.address for tool in TOOLS.values()}


@pytest.mark.parametrize(
    "text",
    [
        "await tools.get_weather({ city: 'x' })",
        "tools.get_weather({ city, 'units': `metric`, days: 2 })",
        "tools.get_weather('x')",
        "tools.get_weather('x', 'metric')",
        "tools.get_weather(args)",
        "tools.get_weather(...args)",
        "tools.get_weather({ ...rest })",
        "tools.get_weather({ [key]: 1 })",
        "tools.get_weather({ city: name, days: n + 1 })",
        "tools.get_weather({ city: 'x', days: 0x10 })",
        "tools.ping(); tools.ping({})",
        "tools.save({ record: {} }); tools.save({ a: 1 })",
        "tools.open({ other: 1 }); tools.open('x')",
        "tools.any({ y: 1 }); tools.any()",
        "tools['ns:tool']({ x: 1 })",
        "github.issues.create({ owner: 'a', title: 'b' })",
        "tools.search('x'); tools.describe('y'); tools.sources(); tools.run(); tools.snippets.list()",
        "tools.executor.sources.list()",
        "tools.__getToolInterface('x')",
        "tools.get_weather.call(null, 1); if (tools.get_weather.pages) tools.get_weather.pages({}); tools.get_weather({ city: 'x' }).then(f)",
        "tools.toString(); tools.github.hasOwnProperty('x')",
        "tools.nope?.(); tools?.nope(); tools.github?.nope()",
        "if (tools.nope) tools.nope()",
        "tools.nope && (await tools.nope())",
        "'nope' in tools ? tools.nope() : 1",
        "typeof tools.nope === 'function' && tools.nope()",
        "try { await tools.nope() } catch (e) { return e.code }",
        "await tools.nope().catch((e) => e.code)",
        "await Promise.allSettled([tools.nope()])",
        "tools[name](); tools[`nope`]()",
        "const tools = {}; tools.nope()",
        "function f(tools) { return tools.nope() }\nf({})",
        "const { tools } = x; tools.nope()",
        "for (const tools of xs) tools.nope()",
        "try { f() } catch (tools) { tools.nope() }",
        "class tools {}\ntools.nope()",
        "async (a, b, tools) => tools.nope()",
        "async (tools) => { { const tools = x; tools.nope() } }",
        "const github = makeGithub(); github.nope()",
        "const { github } = tools; github.issue.create()",
        "other.nope(); nope(); x.tools.nope()",
        "'tools.nope()' // tools.nope()",
        "export default async (other) => other.nope()",
    ],
)  # fmt: skip
def test_what_is_right_or_not_certain_passes(text: str) -> None:
    check(prepare(text), Catalog())
