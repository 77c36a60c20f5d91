"""Progress and questions go up to the host; without somebody to answer, a call fails and says why."""

import asyncio

import pytest

from gloveport.errors import ToolError
from gloveport.sources.mcp.elicitation import CallProgress, ElicitationAnswer, ElicitationQuestion
from tests.sources.mcp.support import WAYS, call, library, opened, raw

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(("way", "version"), WAYS)
async def test_progress_is_passed_up(way: str, version: str) -> None:
    heard: list[CallProgress] = []
    async with library(way, version, on_progress=heard.append) as source:
        assert await call(source, "work") == "done"
    assert sorted(heard, key=lambda each: each.progress) == [
        CallProgress("it", "it.work", step, 3, f"step {step}") for step in (1, 2, 3)
    ]


@pytest.mark.parametrize(("way", "version"), WAYS)
async def test_a_question_is_put_to_a_person_and_the_answer_taken_back(way: str, version: str) -> None:
    asked: list[ElicitationQuestion] = []

    async def answer(question: ElicitationQuestion) -> ElicitationAnswer:
        asked.append(question)
        return ElicitationAnswer("accept", {"row": 12})

    async with library(way, version, on_elicit=answer) as source:
        assert await call(source, "book") == {"result": 12}
    (question,) = asked
    assert (question.source, question.tool, question.message, question.url) == ("it", "it.book", "Which row?", None)
    assert question.schema and question.schema["properties"]["row"]["type"] == "integer"


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize(("way", "version"), WAYS)
async def test_a_person_may_say_no(way: str, version: str, action: str) -> None:
    async def answer(question: ElicitationQuestion) -> ElicitationAnswer:
        return ElicitationAnswer(action)  # pyright: ignore

    async with library(way, version, on_elicit=answer) as source:
        with pytest.raises(ToolError):
            await call(source, "book")
        assert await call(source, "add", a=1, b=1) == {"result": 2}


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_a_deadline_stands_still_while_a_person_thinks(version: str) -> None:
    async def answer(question: ElicitationQuestion) -> ElicitationAnswer:
        await asyncio.sleep(1)
        return ElicitationAnswer("accept", {"row": 1})

    async with library("stdio", version, on_elicit=answer) as source:
        assert source._session
        source._session._timeout = 0.5
        assert await call(source, "book") == {"result": 1}


@pytest.mark.parametrize("path", ["book", "think"])
@pytest.mark.parametrize(("way", "version"), WAYS)
async def test_without_somebody_to_ask_the_call_fails_with_a_hint(way: str, version: str, path: str) -> None:
    async with library(way, version) as source:
        with pytest.raises(ToolError) as caught:
            await call(source, path)
        assert caught.value.hint and "none to ask here" in caught.value.hint


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_a_server_that_asks_although_it_may_not_is_refused_politely(method: str) -> None:
    async with opened(raw("asks")) as source:
        with pytest.raises(ToolError) as caught:
            await call(source, "echo", method=method)
        assert "code" in caught.value.message  # the refusal, as the server got it
        assert caught.value.hint and method in caught.value.hint
