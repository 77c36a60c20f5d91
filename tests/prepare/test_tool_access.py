"""Which programs have sources to wait for."""

from __future__ import annotations

import pytest

from gloveport.prepare import prepare
from gloveport.types import Language

SCRIPTS = [
    "tools.people.greet()",
    "codemode.greet()",
    "await greet()",
    "greet().then(console.log)",
    "const greet = people.greet; greet()",
    "const source = 'peo' + 'ple'; tools[source].greet()",
    "const all = { tools }; all.tools.people.greet()",
    "const ask = (t) => t.search('greet'); ask(tools)",
    "globalThis['to' + 'ols'].people.greet()",
    "const { ['to' + 'ols']: t } = globalThis; t.search('greet')",
    "self['to' + 'ols'].people.greet()",
    "\\u0074ools.people.greet()",
    "(0, eval)('to' + 'ols')",
    "new Function('return to' + 'ols')()",
    "[].map.constructor('return to' + 'ols')()",
    "const { constructor: Code } = () => 0; Code('return to' + 'ols')()",
    "[].map['constructor']('return to' + 'ols')()",
    "(() => 0).constructor ('return to' + 'ols')()",
    "__interfaces",
    "__getToolInterface('people.greet')",
    "(t) => t.search('greet')",
    "t => t.search('greet')",
    "({ source }, t) => t[source].greet()",
    "const main = (input, t) => t.search('greet')",
    "export default (t) => t.search('greet')",
    "export default function (t) { return t.search('greet') }",
    "function run(t) { return t.search('greet') }",
    "function main() { return arguments[0].search('greet') }",
    "```ts\nawait tools.people.greet()\n```",
]
PYTHON = [
    "tools.people.greet()",
    "codemode.greet()",
    "await greet()",
    "source = 'peo' + 'ple'\ntools[source].greet()",
    "getattr(tools, 'people').greet()",
    "ask = lambda t: t.search('greet')\nask(tools)",
    "globals()['to' + 'ols']",
    "vars()['to' + 'ols']",
    "eval('to' + 'ols')",
    "exec('x = to' + 'ols')",
    "(lambda: 0).__globals__",
    "(n for n in [1]).gi_frame.f_globals",
    "match len:\n    case object(__self__=module):\n        module",
    "class A:\n    __match_args__ = ('__globals__',)\nmatch print:\n    case A(found):\n        found",
    "import builtins",
    "from builtins import eval as f",
    "import json, gc",
    "import json\njson.__builtins__",
    "from json import __builtins__ as b",
    "from json import *\nscanner",
    "import asyncio\nasyncio.sys.modules",
    "from asyncio import sys",
    "try:\n    import sys\nexcept ImportError:\n    pass",
    "__interfaces",
    "def run(t):\n    return t.search('greet')",
    "run = lambda t: t.search('greet')",
    "async def main(t):\n    return await t.search('greet')",
    "def f(x: tools.people.greet()):\n    return x\nf(1)",
    "class A(people.Base):\n    pass\nA()",
    "\uff54\uff4f\uff4f\uff4c\uff53.people.greet()",  # the same name to Python
    "```python\nawait tools.people.greet()\n```",
]


@pytest.mark.parametrize(
    ("language", "text"),
    [*(("typescript", text) for text in SCRIPTS), *(("python", text) for text in PYTHON)],
)
def test_a_program_that_could_reach_a_tool_has_sources_to_wait_for(language: Language, text: str) -> None:
    assert prepare(text, language=language).tool_access.possible


COMPUTING = [
    "",
    "1 + 1",
    "[3, 1, 2].sort().map((n) => n * n)",
    "[1, 2].reduce((a, b) => a + b)",
    "const [a, { b, c: [d], ...e }] = [1, { b: 2, c: [3] }]; a + b + d + Object.keys(e).length",
    "let sum = 0\nfor (const n of [1, 2]) { sum += n }\nsum",
    "function square(n = 2) { return n * n }\nsquare(3)",
    "type Row = { n: number }\nconst rows: Record<string, Row> = {}\nrows.tools = { n: 1 }\nJSON.stringify(rows)",
    "class Point { x = 1 }\nnew Point().x",
    "try { JSON.parse('{') } catch (error) { console.log(String(error)) }",
    "// tools\n'tools'",
    "await new Promise((resolve) => setTimeout(resolve, 5))\nconsole.log(new URL('http://localhost').host)",
    "new Promise(done => queueMicrotask(done))",
    "class Point { constructor(x) { this.x = x }\n  twice() { return 2 * this.x } }\nnew Point(1).twice()",
    "async () => { const squares = [1, 2].map((n) => n * n); return squares }",
    "async function main() { return 'caf\\u00e9' }",
    "export default async () => await step('roll', () => Math.random())",
    "[...crypto.getRandomValues(new Uint8Array(2))].map(n => new Intl.NumberFormat('en').format(n))",
]
COMPUTING_PYTHON = [
    "",
    "1 + 1",
    "sum(n * n for n in [1, 2])",
    "def square(n):\n    return n * n\nsquare(3)",
    "try:\n    int('x')\nexcept ValueError as error:\n    print(error)",
    "match [1]:\n    case [first, *rest]:\n        print(first, rest)",
    "class Point:\n    x = 1\nPoint().x",
    "# tools\n'tools'",
    "import json\njson.dumps({'a': 1})",
    "import asyncio, math as m\nfrom collections import Counter\nemit(Counter('abc'))\nawait asyncio.sleep(m.pi / 100)",
    "class Point:\n    def __init__(self, x):\n        super().__init__()\n        self._x = x\nPoint(1)._x",
    "from __future__ import annotations\nimport operator, os\nasync def main():\n    return operator.add(1, 2)",
    "run = lambda: step('roll', lambda: 1)",
    "from urllib.parse import quote\nif __name__ == '__main__':\n    print(quote('a b'))",
]


@pytest.mark.parametrize(
    ("language", "text"),
    [*(("typescript", text) for text in COMPUTING), *(("python", text) for text in COMPUTING_PYTHON)],
)
def test_a_program_that_only_computes_has_none(language: Language, text: str) -> None:
    assert not prepare(text, language=language).tool_access.possible


@pytest.mark.parametrize(
    ("language", "text"),
    [("typescript", "{ const shop = 1 }\nshop.list()"), ("python", "def f():\n    shop = 1\nshop.list()")],
)
def test_a_name_that_is_bound_elsewhere_is_still_among_the_names_of_the_program(language: Language, text: str) -> None:
    assert "shop" in prepare(text, language=language).tool_access.names
