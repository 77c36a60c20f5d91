"""`GloveportExecutor`: functions that the caller brings to one run, and an answer whatever the program does."""

import threading
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, ExecuteResult, Executor, Gloveport, GloveportExecutor, OptionError, Rule, tool

pytestmark = pytest.mark.integration


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def search(query: str) -> list[str]:
    return [query.upper()]


def refuse() -> None:
    raise ValueError("no such user")


async def test_a_program_calls_the_functions_of_its_caller_beside_the_tools_of_the_port(port: Gloveport) -> None:
    executor: Executor = GloveportExecutor(port)
    code = (
        "[await codemode.plus({a: 1, b: 2}), await codemode.search({query: 'x'}), await tools.add(1, 1), console.log('hi')]"
    )
    done = await executor.execute(code, {"plus": add, "search": search})
    assert done == ExecuteResult([3, ["X"], 2, None], None, ("hi",))
    gone = await executor.execute("typeof (await tools.describe('plus'))", {})
    assert "plus" in (gone.error or ""), "the functions of a run belong to that run alone"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("throw new Error('boom')", "boom"),
        ("await codemode.refuse()", "no such user"),
        ("await codemode.plus({a: 'one', b: 2})", "a"),
        ("const", "unexpected end"),
        ("while (true) {}", "0.5"),
        ("process.exit(1)", ""),
        ("(() => {})", None),
        ("", None),
    ],
)
async def test_whatever_a_program_does_is_an_answer(port: Gloveport, code: str, error: str | None) -> None:
    executor = GloveportExecutor(port, limits={"wall_seconds": 0.5})
    answer = await executor.execute(code, {"plus": add, "refuse": refuse})
    assert answer.result is None
    assert (answer.error is None) is (error is None)
    assert (error or "") in (answer.error or "")


async def test_a_python_program_calls_them_too_and_a_rule_holds() -> None:
    async with Gloveport(rules=[Rule("caller.refuse", "deny")], spare=0) as opened:
        executor = GloveportExecutor(opened, language="python")
        assert (await executor.execute("await tools.add(a=40, b=2)", [add])).result == 42
        denied = await executor.execute("await tools.refuse()", [refuse])
        assert denied.error == "`tools.refuse` is not allowed"


async def test_a_function_that_can_be_no_tool_is_refused(port: Gloveport) -> None:
    not_callable: Any = {"add": 3}
    with pytest.raises(OptionError, match="must be a function"):
        await GloveportExecutor(port).execute("1", not_callable)


async def test_a_run_that_waits_for_a_person_names_itself_and_still_reaches_the_functions(tmp_path: Path) -> None:
    sent = threading.Event()

    @tool(writes=True)
    def send() -> None:
        sent.set()

    async with Gloveport(store=tmp_path / "store", rules=[Rule("caller.send", "ask")], spare=0) as opened:
        answer = await GloveportExecutor(opened).execute("await tools.send()", [send])
        [request] = opened.approvals.waiting
        assert request.run in (answer.error or "")
        assert "gloveport approvals list" in (answer.error or "")
        opened.approvals.answer(request.id, request.digest, Answer(True, "owner"))
        outcome = await opened.followed(request.run, "default")
        assert outcome is not None
        assert outcome.ok
        assert sent.is_set()


@pytest.mark.parametrize("decision", ["deny", "ask"])
async def test_no_name_of_a_function_leads_around_the_rules(decision: Any) -> None:
    """The calls of the executor's functions go through the bridge (B4)."""
    made: list[str] = []

    def send(to: str) -> None:
        made.append(to)

    async with Gloveport(rules=[Rule("caller.send", decision)], spare=1) as opened:
        for name in ("tools.send", "codemode.send", "tools.caller.send"):
            done = await GloveportExecutor(opened).execute(f"await {name}({{to: 'x'}})", [send])
            assert (done.error or "").startswith("`tools.send` "), done
    assert made == []
