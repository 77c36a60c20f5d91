"""Which programs have sources to wait for."""

from __future__ import annotations

import pytest

from gloveport.prepare import may_reach


@pytest.mark.parametrize(
    "text",
    [
        "tools.people.greet()",
        "codemode.greet()",
        "await greet()",
        "greet().then(console.log)",
        "globalThis['to' + 'ols'].people.greet()",
        "(function () { return this })()['to' + 'ols'].people.greet()",
        "\\u0074ools.people.greet()",
        "(0, eval)('to' + 'ols')",
        "globals()['to' + 'ols']",
        "vars()['to' + 'ols']",
        "(lambda: 0).__globals__",
        "(n for n in [1]).gi_frame.f_globals",
        "import builtins",
        "__interfaces",
        "(t) => t.search('greet')",
        "t => t.search('greet')",
        "({ source }, t) => t[source].greet()",
        "const main = (input, t) => t.search('greet')",
        "export default (t) => t.search('greet')",
        "function run(t) { return t.search('greet') }",
        "def run(t):\n    return t.search('greet')",
        "\uff54\uff4f\uff4f\uff4c\uff53.people.greet()",  # the same name to Python
    ],
)
def test_a_program_that_could_reach_a_tool_has_sources_to_wait_for(text: str) -> None:
    assert may_reach(text)


@pytest.mark.parametrize(
    "text",
    ["", "1 + 1", "[3, 1, 2].sort().map((n) => n * n)", "[1, 2].reduce((a, b) => a + b)", "sum(n * n for n in [1, 2])"],
)
def test_a_program_that_only_computes_has_none(text: str) -> None:
    assert not may_reach(text)
