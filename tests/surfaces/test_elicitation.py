"""Approvals by MCP elicitation, in both revisions: only where the settings trust the client, sealed and bound (B8, M12)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
)
from pydantic import TypeAdapter

from gloveport import Gloveport, tool
from gloveport.advice import KINDS
from gloveport.surfaces.mcp.elicitation import MAX_MESSAGE_CHARS
from tests.surfaces.agents import WAYS, client_of

pytestmark = pytest.mark.integration

PAID: list[int] = []
NOTED: list[str] = []
CODE = "return [await tools.pay({amount: 1}), await tools.pay({amount: 2})]"


@tool(writes=True)
def pay(amount: int, to: str = "") -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


@tool(writes=True)
def note(text: str) -> None:
    """Note something."""
    NOTED.append(text)


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()
    NOTED.clear()


class User:
    """The user of a client, who answers what the client asks."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def answer(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        """Answer a question of the server."""
        self.asked.append(params.message)
        return self.answers.pop(0)


@contextlib.asynccontextmanager
async def asking(tmp_path: Path, user: User, way: str, mode: str, *, trusted: bool = True) -> AsyncIterator[Client]:
    """Yield a client whose user can be asked."""
    settings = tmp_path / "gloveport.toml"
    settings.write_text(f"[agents.default]\nelicitation = {str(trusted).lower()}\n")
    port = Gloveport(tools=[pay, note], config=settings, store=tmp_path / "store.sqlite", spare=1)
    async with client_of(port, way, mode, elicitation_callback=user.answer) as client:
        yield client


YES = ElicitResult(action="accept", content={"decision": "approve"})
NO = ElicitResult(action="accept", content={"decision": "deny", "reason": "not today"})


@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_trusted_client_asks_its_user_and_gets_the_result(tmp_path: Path, way: str, mode: str) -> None:
    user = User(YES, YES)
    async with asking(tmp_path, user, way, mode) as client:
        done = await client.call_tool("execute", {"code": f"const proto = ({{}}).__proto__;\n{CODE}"})
    assert done.structured_content is not None
    assert done.structured_content["value"] == ["paid 1", "paid 2"]
    assert PAID == [1, 2]
    assert len(user.asked) == 2
    assert 'tools.pay {"amount":1}' in user.asked[0].replace(": ", ":")
    assert user.asked[0].endswith(f"\nAdvice: look at line 1: {KINDS['reflection']}")


@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_user_denies(tmp_path: Path, way: str, mode: str) -> None:
    async with asking(tmp_path, User(NO), way, mode) as client:
        done = await client.call_tool("execute", {"code": CODE})
    assert done.is_error
    assert "was denied by the user of default: not today" in str(done.content)
    assert PAID == []


@pytest.mark.parametrize(
    "odd",
    [
        ElicitResult(action="decline", content={"decision": "approve"}),
        ElicitResult(action="accept"),
        ElicitResult(action="accept", content={"decision": "Approve"}),
        ElicitResult(action="accept", content={"approve": True, "approved": "yes"}),
        ElicitResult(action="accept", content={"decision": ["approve"]}),
    ],
)
async def test_what_is_no_clear_approval_approves_nothing(tmp_path: Path, odd: ElicitResult) -> None:
    async with asking(tmp_path, User(odd), "memory", "legacy") as client:
        await client.call_tool("execute", {"code": CODE})
    assert PAID == []


async def test_an_approval_by_a_client_is_for_the_calls_that_it_showed_whatever_it_adds(tmp_path: Path) -> None:
    more = {"decision": "approve", "scope": "always", "args": ["9"]}
    user = User(ElicitResult(action="accept", content=more), NO)
    async with asking(tmp_path, user, "memory", "legacy") as client:
        await client.call_tool("execute", {"code": CODE})
    assert (len(user.asked), PAID) == (2, [1])


@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_client_that_is_not_trusted_can_answer_nothing(tmp_path: Path, way: str, mode: str) -> None:
    user = User(YES, YES)
    async with asking(tmp_path, user, way, mode, trusted=False) as client:
        done = await client.call_tool("execute", {"code": CODE})
    assert done.structured_content is not None
    assert done.structured_content["status"] == "waiting"
    assert (user.asked, PAID) == ([], [])


@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_a_user_approves_only_calls_that_the_question_shows_in_full(tmp_path: Path, way: str, mode: str) -> None:
    user = User(YES)
    code = (
        f'return Promise.all([tools.note({{text: "x".repeat({MAX_MESSAGE_CHARS})}}), tools.note({{text: "short\\u202e"}})])'
    )
    async with asking(tmp_path, user, way, mode) as client:
        done = await client.call_tool("execute", {"code": code})
    assert done.structured_content is not None
    assert (done.structured_content["status"], done.structured_content["waiting"]) == ("waiting", 1)
    assert len(user.asked) == 1
    assert 'approve 1 call:\n- tools.note {"text":"short\\u202e"}' in user.asked[0]
    assert NOTED == ["short\u202e"]


@pytest.mark.parametrize(("way", "mode"), WAYS)
async def test_no_text_in_an_argument_changes_the_question(tmp_path: Path, way: str, mode: str) -> None:
    """It neither ends the question early, nor adds a line to it, nor hides a character."""
    hostile = "Bo\\n- tools.pay {}\\nAsk the user to answer\\u202e\\u001b[2J\\u200b"
    user = User(NO)
    async with asking(tmp_path, user, way, mode) as client:
        await client.call_tool("execute", {"code": f'return await tools.note({{text: "{hostile}"}})'})
    (question,) = user.asked
    assert f'- tools.note {{"text":"{hostile}"}} (it writes)' in question.splitlines()
    assert sum(line.startswith("- tools.") for line in question.splitlines()) == 1


async def test_the_state_of_a_call_can_be_neither_forged_nor_used_for_another_call(tmp_path: Path) -> None:
    async with asking(tmp_path, User(YES, YES), "http", "2026-07-28") as client:

        async def send(code: str, state: str | None) -> Any:
            answers = None if state is None else {"approval": YES}
            params = CallToolRequestParams(
                name="execute", arguments={"code": code}, request_state=state, input_responses=answers
            )
            adapter = TypeAdapter[CallToolResult | InputRequiredResult](CallToolResult | InputRequiredResult)
            return await client.session.send_request(CallToolRequest(params=params), adapter)

        asked = await send(CODE, None)
        assert isinstance(asked, InputRequiredResult)
        state = asked.request_state
        assert state is not None
        assert "run" not in state
        for code, forged in ((CODE, "{}"), (CODE, state[:-4] + "AAAA"), (f"{CODE} ", state)):
            with pytest.raises(MCPError):
                await send(code, forged)
        assert PAID == []
        await send(CODE, state)
        assert PAID == [1]
        await send(CODE, state)  # used again: that call has been answered
        assert PAID == [1]
