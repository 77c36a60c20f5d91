"""Whose error is it? A code that a tool gives is the tool's, and never a decision of Gloveport."""

from typing import Any

import pytest

from gloveport import ToolError
from gloveport.bridge.received_errors import MAX_ERRORS, ReceivedErrors
from gloveport.errors import CODES, exit_code, http_status, label
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.rules import Rules
from gloveport.rules.source_writes import SourceWrites
from gloveport.types import Tool
from tests.bridge.support import FakeSource, port, refused


def deny() -> None:
    """Refuse, under a code of Gloveport's."""
    raise ToolError("not you", code="denied", origin="gloveport")


class ForeignSource(FakeSource):
    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        raise ToolError("not you", code="denied")


WRITE = Tool("shop.pay", "Pay.", {"type": "object"}, kind="openapi", writes=True)


async def test_an_error_that_a_function_raises_is_the_tools_own_whatever_it_claims() -> None:
    run = port(deny)
    error = await refused(run, "deny")
    assert (error.code, error.origin) == ("denied", "tool")
    assert run.records[0].origin == "tool"
    assert run.records[0].error == "tool error denied: not you"


async def test_every_error_of_a_source_that_is_not_ours_is_the_tools_own() -> None:
    foreign = ForeignSource("shop", [Tool("shop.read", "Read.", {"type": "object"}, kind="own")])
    assert (await refused(port(sources=[foreign]), "shop.read")).origin == "tool"


async def test_an_exception_of_a_function_is_the_tools_own() -> None:
    def fail() -> None:
        raise KeyError("x")

    assert (await refused(port(fail), "fail")).origin == "tool"


async def test_a_denied_write_is_ours_and_tells_the_program_no_setting() -> None:
    run = port(sources=[FakeSource("shop", [WRITE])], policy=RuleBook(Rules(sources={"shop": SourceWrites()})))
    error = await refused(run, "shop.pay", {})
    assert (error.code, error.origin) == ("denied", "gloveport")
    assert "ask the user" in (error.hint or "").lower()
    assert error.setting is not None
    assert error.setting.endswith('; or set `writes = ["pay"]` (or `writes = "allow"`) under [sources.shop]')
    assert "on_approval=" in error.setting
    assert "store=" in error.setting
    assert "writes =" not in error.message + (error.hint or "")
    assert (run.records[0].error or "").startswith("denied: ")


async def test_what_the_bridge_itself_refuses_is_ours() -> None:
    def add(a: int) -> int:
        """Add."""
        return a

    run = port(add)
    assert (await refused(run, "add", "x")).origin == "gloveport"
    assert (await refused(run, "ad", 1)).origin == "gloveport"


@pytest.mark.parametrize("code", [*CODES, "made-up"])
def test_a_tools_code_has_the_exit_code_and_status_of_a_failed_tool(code: str) -> None:
    assert (exit_code(code, "tool"), http_status(code, "tool")) == (7, 502)
    assert label(code, "gloveport") == code


def test_a_code_stays_the_tools_once_the_tool_has_used_it() -> None:
    received = ReceivedErrors()
    received.add(ToolError("a", code="denied", tool="pay"))
    received.add(ToolError("b", code="denied", tool="pay", origin="tool"))
    received.add(ToolError("c", code="denied", tool="pay"))
    known = received.find("denied", "pay")
    assert known is not None and known.origin == "tool"
    assert received.find("denied", "refund") is None


def test_a_run_keeps_a_bounded_number_of_errors() -> None:
    received = ReceivedErrors()
    for number in range(MAX_ERRORS + 10):
        received.add(ToolError("x", code=f"code-{number}", tool="pay", origin="tool"))
    assert received.find("code-0", "pay") is not None
    assert received.find(f"code-{MAX_ERRORS}", "pay") is None
