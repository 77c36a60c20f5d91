"""Every combination of what a tool is, which rule matches it and who calls: the decision (B4, B5, B6)."""

from __future__ import annotations

import itertools

import pytest

from gloveport.rules.rule import Rule
from gloveport.rules.rules import PRESETS, Preset, Rules
from gloveport.rules.source_writes import SourceWrites
from gloveport.types import CallRequest, Tool, Verdict

# What sources make of a tool: its kind, and whether it counts as one that writes. An MCP tool does unless its server is
# trusted and calls it read-only; tests/sources show that for real servers and definitions.
TOOLS = {
    "GET": ("openapi", False),
    "HEAD": ("openapi", False),
    "POST": ("openapi", True),
    "PUT": ("openapi", True),
    "PATCH": ("openapi", True),
    "DELETE": ("openapi", True),
    "query": ("graphql", False),
    "mutation": ("graphql", True),
    "MCP, read-only, trusted": ("mcp", False),
    "MCP, read-only, not trusted": ("mcp", True),
    "MCP, destructive": ("mcp", True),
    "MCP, without annotations": ("mcp", True),
    "function": ("function", False),
    "function that writes": ("function", True),
}
RULES: tuple[Verdict | None, ...] = (None, "allow", "ask", "deny")
STRICTEST: tuple[Verdict, ...] = ("deny", "ask", "allow")


def default(preset: Preset, kind: str, writes: bool) -> Verdict:
    """What holds without a rule."""
    if preset == "open":
        return "allow"
    if preset == "strict":
        return "allow" if kind == "function" and not writes else "ask"
    return "ask" if writes else "allow"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_strictest_rule_that_matches_decides_and_else_the_preset(preset: Preset, tool: str) -> None:
    kind, writes = TOOLS[tool]
    made = Tool("shop.things.change", "", {}, kind=kind, writes=writes)
    for for_all, for_clerk, agent in itertools.product(RULES, RULES, ("default", "clerk", "other")):
        rules = [Rule("shop.*", for_all)] if for_all else []
        rules += [Rule("*.change", for_clerk, agent="clerk")] if for_clerk else []
        matching = [rule.verdict for rule in rules if rule.agent in ("*", agent)]
        expected = min(matching, key=STRICTEST.index) if matching else default(preset, kind, writes)
        for order in (rules, rules[::-1]):
            decided = Rules(order, preset)
            request = CallRequest(made, {}, agent)
            assert decided.decide(request).verdict == expected
            assert decided.explain(request).decision.verdict == expected
            settled = decided.settled(made, agent)
            assert settled is not None
            assert settled.verdict == expected


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_what_a_source_opens_never_overrides_a_stricter_rule(tool: str, verdict: Verdict) -> None:
    kind, writes = TOOLS[tool]
    made = Tool("shop.things.change", "", {}, kind=kind, writes=writes)
    rules = Rules([Rule("shop.things.*", verdict)], sources={"shop": SourceWrites(("*",))})
    assert rules.decide(CallRequest(made, {})).verdict == verdict
