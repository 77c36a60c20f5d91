"""Writes stay shut until a source's settings open them."""

from __future__ import annotations

import pytest

from gloveport.policy.writes import SourceWrites, WritesDenied
from gloveport.types import Tool


def tool(address: str, *, writes: bool = True, kind: str = "openapi") -> Tool:
    return Tool(address, "", {}, kind=kind, writes=writes)


@pytest.mark.parametrize(
    ("address", "opened", "verdict"),
    [
        ("github.issues.create", {}, "deny"),
        ("github.issues.create", {"github": ()}, "deny"),
        ("github.issues.create", {"gitlab": ("*",)}, "deny"),
        ("github.issues.create", {"github": ("*",)}, "allow"),
        ("github.issues.create", {"github": ("issues.*",)}, "allow"),
        ("github.issues.create", {"github": ("issues.create",)}, "allow"),
        ("github.issues.create", {"github": ("Issues.*", "issues", "create", "issues.get")}, "deny"),
    ],
)
def test_what_writes_is_decided_by_its_sources_patterns(
    address: str, opened: dict[str, tuple[str, ...]], verdict: str
) -> None:
    rules = {name: SourceWrites(tuple(patterns)) for name, patterns in opened.items()}
    assert WritesDenied(rules).decide(tool(address), {}).verdict == verdict


def test_reads_and_plain_functions_work() -> None:
    policy = WritesDenied({})
    assert policy.decide(tool("github.issues.get", writes=False), {}).verdict == "allow"
    assert policy.decide(tool("local.save", kind="function"), None).verdict == "allow"


def test_a_refusal_names_the_line_that_would_open_it() -> None:
    refused = WritesDenied({}).decide(tool("github.issues.create"), {})
    assert 'writes = ["issues.create"]' in (refused.setting or "")
    assert "[sources.github]" in (refused.setting or "")
    assert refused.reason == "it writes, and writes of github are shut"
    assert WritesDenied({}).decide(tool("memory.read", kind="mcp"), {}).reason.startswith("it may write,")


def test_a_second_refusal_shows_the_whole_list_and_its_place() -> None:
    rules = {"github": SourceWrites(("issues.create",), "/home/ada/gloveport.toml:3")}
    refused = WritesDenied(rules).decide(tool("github.issues.update"), {})
    assert 'writes = ["issues.create", "issues.update"]' in (refused.setting or "")
    assert "[sources.github] in /home/ada/gloveport.toml:3" in (refused.setting or "")


def test_a_refusal_of_an_mcp_tool_mentions_trust_annotations_unless_they_are_trusted() -> None:
    for trusts in (False, True):
        refused = WritesDenied({"memory": SourceWrites(trusts_annotations=trusts)}).decide(
            tool("memory.read", kind="mcp"), {}
        )
        assert ("trust_annotations = true" in (refused.setting or "")) is not trusts
