"""Writes ask until a source's settings open or deny them."""

from __future__ import annotations

import pytest

from gloveport.rules.rule import Rule
from gloveport.rules.rules import Rules
from gloveport.rules.source_writes import SourceWrites
from gloveport.types import CallRequest, Decision, Tool


def tool(address: str, *, writes: bool = True, kind: str = "openapi") -> Tool:
    return Tool(address, "", {}, kind=kind, writes=writes)


def decide(writes: dict[str, SourceWrites], tool: Tool) -> Decision:
    return Rules(sources=writes).decide(CallRequest(tool, {}))


@pytest.mark.parametrize(
    ("address", "opened", "verdict"),
    [
        ("github.issues.create", {}, "ask"),
        ("github.issues.create", {"github": ()}, "ask"),
        ("github.issues.create", {"gitlab": ("*",)}, "ask"),
        ("github.issues.create", {"github": ("*",)}, "allow"),
        ("github.issues.create", {"github": ("issues.*",)}, "allow"),
        ("github.issues.create", {"github": ("issues.create",)}, "allow"),
        ("github.issues.create", {"github": ("Issues.*", "issues", "create", "issues.get")}, "ask"),
    ],
)
def test_what_writes_is_decided_by_its_sources_patterns(
    address: str, opened: dict[str, tuple[str, ...]], verdict: str
) -> None:
    rules = {name: SourceWrites(tuple(patterns)) for name, patterns in opened.items()}
    assert decide(rules, tool(address)).verdict == verdict


def test_reads_are_allowed() -> None:
    assert decide({}, tool("github.issues.get", writes=False)).verdict == "allow"


def test_writes_can_be_denied_and_rules_still_allow_some() -> None:
    denied = {"github": SourceWrites(denied=True, place="/home/ada/gloveport.toml:3")}
    refused = decide(denied, tool("github.issues.create"))
    assert (refused.verdict, refused.reason) == ("deny", "it writes, and writes of github are denied")
    assert refused.setting == 'change `writes = "deny"` under [sources.github] in /home/ada/gloveport.toml:3'
    assert decide(denied, tool("github.issues.get", writes=False)).verdict == "allow"
    allowed = Rules([Rule("github.issues.*", "allow")], sources=denied)
    assert allowed.decide(CallRequest(tool("github.issues.create"), {})).verdict == "allow"


def test_a_refusal_names_the_line_that_would_open_it() -> None:
    refused = decide({"github": SourceWrites()}, tool("github.issues.create"))
    assert 'writes = ["issues.create"]' in (refused.setting or "")
    assert "[sources.github]" in (refused.setting or "")
    assert refused.reason == "it writes"
    assert decide({}, tool("memory.read", kind="mcp")).reason == "it may write"


def test_a_second_refusal_shows_the_whole_list_and_its_place() -> None:
    rules = {"github": SourceWrites(("issues.create",), "/home/ada/gloveport.toml:3")}
    refused = decide(rules, tool("github.issues.update"))
    assert 'writes = ["issues.create", "issues.update"]' in (refused.setting or "")
    assert "[sources.github] in /home/ada/gloveport.toml:3" in (refused.setting or "")


def test_a_refusal_of_an_mcp_tool_mentions_trust_annotations_unless_they_are_trusted() -> None:
    for trusts in (False, True):
        refused = decide({"memory": SourceWrites(trusts_annotations=trusts)}, tool("memory.read", kind="mcp"))
        assert ("trust_annotations = true" in (refused.setting or "")) is not trusts
