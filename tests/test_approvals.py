"""Programs whose calls ask a person, in real sandboxes: the clock stands still, the answer decides, other runs go on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from gloveport import Answer, ApprovalRequest, Gloveport, OptionError, Rule, Rules, tool
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.errors import ApprovalError, SandboxError
from gloveport.host.program_reader import ProgramReader
from tests.engines import ENGINES, Engine

pytestmark = pytest.mark.integration

PAID: list[int] = []


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


def read() -> str:
    """Read."""
    return "text"


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


def a_call(engine: Engine, amount: Any = 5) -> str:
    return (
        f"return await tools.pay({{amount: {amount}}})"
        if engine.language != "python"
        else f"await tools.pay(amount={amount})"
    )


async def test_without_anybody_to_ask_a_function_that_writes_is_denied_with_what_to_do() -> None:
    async with Gloveport(tools=[pay, read], spare=1) as port:
        outcome = await port.run("await tools.pay({amount: 5})")
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.origin) == ("denied", "gloveport")
        assert "on_approval=" in (outcome.error.setting or "")
        assert "store=" in (outcome.error.setting or "")
        assert (await port.run("return await tools.read()")).value == "text"
        with pytest.raises(OptionError):
            port.approvals  # noqa: B018
    assert PAID == []


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
async def test_an_approval_that_takes_longer_than_the_run_may_harms_nothing(engine: Engine) -> None:
    """Ten times the wall limit."""
    asked: list[ApprovalRequest] = []

    async def answer(request: ApprovalRequest) -> Answer:
        asked.append(request)
        await asyncio.sleep(10 * 0.4)
        return Answer(True, "ada")

    async with Gloveport(tools=[pay], on_approval=answer, spare=1) as port:
        run = asyncio.ensure_future(
            port.run(a_call(engine), language=engine.language, engine=engine.name, limits={"wall_seconds": 0.4})
        )
        other = await port.run("return 1 + 1")
        outcome = await run
    assert other.value == 2
    assert outcome.error is None, outcome.error
    assert outcome.value == "paid 5"
    assert PAID == [5]
    assert (asked[0].tool, asked[0].args, asked[0].line, asked[0].agent) == ("local.pay", {"amount": 5}, 1, "default")
    assert asked[0].run == outcome.run


async def test_the_wall_clock_goes_on_after_the_answer() -> None:
    async with Gloveport(tools=[pay], on_approval=lambda request: True, spare=1) as port:
        outcome = await port.run(
            "await tools.pay({amount: 1}); await new Promise(() => setTimeout(() => {}, 1e9))", limits={"wall_seconds": 1}
        )
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"


async def test_a_program_catches_a_denial_with_its_reason() -> None:
    code = "try { await tools.pay({amount: 5}) } catch (e) { return [e.code, e.message] }"
    async with Gloveport(tools=[pay], on_approval=lambda request: Answer(False, "ada", reason="too much"), spare=1) as port:
        outcome = await port.run(code)
    assert outcome.value == ["denied", "`tools.pay` was denied by ada: too much"]


async def test_a_group_of_calls_is_approved_at_once_and_a_loop_for_its_run(tmp_path: Any) -> None:
    """70 calls, 20 of them writes: made together they are one group; one after the other, the first approves the rest."""
    together = """
        const reads = Array.from({length: 50}, () => tools.read());
        const pays = Array.from({length: 20}, (_, n) => tools.pay({amount: n}));
        return (await Promise.all([...reads, ...pays])).length"""
    in_turn = """
        for (let n = 0; n < 50; n++) { await tools.read(); if (n < 20) await tools.pay({amount: n}) }
        return 'all'"""
    async with Gloveport(tools=[pay, read], store=tmp_path / "store.sqlite", spare=1) as port:
        outcome = await port.run(together)
        assert (outcome.status, len(outcome.waiting)) == ("waiting", 20)
        port.approvals.answer_group({one.id: one.digest for one in port.approvals.waiting}, Answer(True, "ada"))
        outcome = await port.resume(outcome.run)
        assert (outcome.value, len(PAID)) == (70, 20)
        outcome = await port.run(in_turn)
        (request,) = port.approvals.waiting
        port.approvals.answer(request.id, request.digest, Answer(True, "ada", "run"))
        outcome = await port.resume(outcome.run)
        assert (outcome.value, len(outcome.calls), len(PAID)) == ("all", 70, 40)


async def test_a_waiting_run_belongs_to_its_agent_and_outlives_its_port(tmp_path: Any) -> None:
    (tmp_path / "gloveport.toml").write_text("[agents.clerk]\n[agents.other]\n")
    async with Gloveport(tools=[pay], store=tmp_path / "store.sqlite", config=tmp_path / "gloveport.toml", spare=1) as port:
        outcome = await port.run("return await tools.pay({amount: 5})", agent="clerk")
        assert outcome.status == "waiting"
        for agent in ("other", "default"):
            with pytest.raises(OptionError, match="no run"):
                await port.resume(outcome.run, agent=agent)
        again = await port.resume(outcome.run, agent="clerk")
        assert (again.status, again.waiting) == ("waiting", outcome.waiting)
        asked = asyncio.Event()
        port.approvals.listen(lambda what, request: asked.set())
        waits = asyncio.ensure_future(port.run("return await tools.pay({amount: 6})"))
        await asked.wait()
    left = await waits
    assert left.status == "waiting"
    assert PAID == []
    async with Gloveport(tools=[pay], store=tmp_path / "store.sqlite", spare=1) as port:
        again = await port.resume(left.run)
        assert (again.status, again.waiting) == ("waiting", left.waiting)
    assert PAID == []


async def test_a_changed_rule_applies_to_the_next_call_of_a_running_program(tmp_path: Any) -> None:
    settings = tmp_path / "gloveport.toml"
    settings.write_text('[[rules]]\nallow = "*"\n')

    def edit() -> None:
        """Edit the settings, as a person would."""
        settings.write_text('[[rules]]\ndeny = "local.pay"\nreason = "closed today"\n')

    code = "const first = await tools.pay({amount: 1}); await tools.edit(); return [first, await tools.pay({amount: 2}).catch((e) => e.message)]"
    async with Gloveport(tools=[pay, edit], config=settings, spare=1) as port:
        outcome = await port.run(code)
        assert outcome.value == ["paid 1", "`tools.pay` is not allowed: closed today"]
        port.rules = Rules([Rule("*", "allow")])
        assert (await port.run("return await tools.pay({amount: 3})")).value == "paid 3"
    assert PAID == [1, 3]


async def test_an_agent_sees_its_own_tools_only(tmp_path: Any) -> None:
    (tmp_path / "gloveport.toml").write_text('[agents.reader]\ntools = ["local.read"]\nlimits = {max_calls = 2}\n')
    async with Gloveport(tools=[pay, read], config=tmp_path / "gloveport.toml", spare=1) as port:
        code = "return [await tools.search(''), await tools.pay({amount: 1}).catch((e) => [e.code, e.message])]"
        rows, error = (await port.run(code, agent="reader")).value
        assert [row["path"] for row in rows] == ["read"]
        assert error[0] == "unknown-tool"
        assert "pay" not in error[1].replace("tools.pay", "")
        assert len((await port.run("return await tools.search('')")).value) == 2
        failed = await port.run("for (let n = 0; n < 3; n++) await tools.read()", agent="reader")
        assert failed.error is not None
        assert failed.error.code == "call-limit"
        with pytest.raises(OptionError, match="there is no agent"):
            await port.run("1", agent="nobody")


async def test_what_an_agent_sees_changes_with_the_file_from_its_next_run_on(tmp_path: Any) -> None:
    settings = tmp_path / "gloveport.toml"
    settings.write_text('[agents.clerk]\ntools = ["local.*"]\n')
    async with Gloveport(tools=[pay, read], config=settings, rules="open", spare=1) as port:
        assert (await port.run("return await tools.pay({amount: 1})", agent="clerk")).value == "paid 1"
        settings.write_text('[agents.clerk]\ntools = ["local.read"]\nelicitation = true\n')
        hidden = await port.run("return await tools.pay({amount: 2})", agent="clerk")
        assert hidden.error is not None
        assert hidden.error.code == "unknown-tool"
        assert port.agent("clerk").elicitation
        settings.write_text("")
        with pytest.raises(OptionError, match="there is no agent"):
            await port.run("return await tools.read()", agent="clerk")
    assert PAID == [1]


async def test_a_rule_that_denies_wins_over_an_approval_that_comes_later(tmp_path: Any) -> None:
    settings, store = tmp_path / "gloveport.toml", tmp_path / "store.sqlite"
    settings.write_text("")
    async with Gloveport(tools=[pay], config=settings, store=store, spare=1) as port:
        outcome = await port.run("return await tools.pay({amount: 1}).catch((e) => e.message)")
        (request,) = port.approvals.waiting
        settings.write_text('[[rules]]\ndeny = "local.pay"\nreason = "closed today"\n')
        port.approvals.answer(request.id, request.digest, Answer(True, "ada", "always"))
        assert (await port.resume(outcome.run)).value == "`tools.pay` is not allowed: closed today"
        again = await port.run("return await tools.pay({amount: 2}).catch((e) => e.message)")
        assert again.value == "`tools.pay` is not allowed: closed today"  # the standing approval does not help either
    assert PAID == []


async def test_advice_comes_with_the_request_and_decides_nothing(tmp_path: Any) -> None:
    program = "const walk = [].constructor.constructor;\nreturn await tools.pay({amount: 1})"
    advice = ("look at line 1: the internals of objects lead to things that the program does not name",)
    async with Gloveport(tools=[pay], store=tmp_path / "store.sqlite", spare=1) as port:
        outcome = await port.run(program)
        (request,) = port.approvals.waiting
        assert request.advice == advice
        assert replace(request, advice=()).digest == request.digest
        with closing(ApprovalShelf(tmp_path / "store.sqlite")) as shelf:
            assert shelf.find(request.id).request == request
        port.approvals.answer(request.id, request.digest, Answer(True, "ada"))
        assert (await port.resume(outcome.run)).value == "paid 1"


async def test_a_program_is_looked_at_once_and_only_when_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    looks: list[str] = []
    find_findings = ProgramReader.find_findings

    async def count(reader: ProgramReader, program: Any, *, agent: str) -> Any:
        looks.append(agent)
        return await find_findings(reader, program, agent=agent)

    def approve(request: ApprovalRequest) -> Answer:
        asked.append(request.advice)
        return Answer(True, "ada", "always" if request.args["amount"] == 3 else "once")

    monkeypatch.setattr(ProgramReader, "find_findings", count)
    program = "({}).__proto__;\nreturn await Promise.all([1, 2].map((amount) => tools.pay({amount})))"
    async with Gloveport(tools=[pay, read], on_approval=approve, spare=1) as port:
        assert (await port.run("({}).__proto__; return await tools.read()")).value == "text"
        assert looks == []
        assert (await port.run(program)).value == ["paid 1", "paid 2"]
        assert (looks, len(asked)) == (["default"], 2)
        assert asked[0] == asked[1] != ()
        for _ in range(2):  # the second one has a standing approval
            assert (await port.run("return await tools.pay({amount: 3})")).value == "paid 3"
        assert len(looks) == 2


@pytest.mark.parametrize("problem", [SandboxError("broken"), ZeroDivisionError(), None])
async def test_a_person_is_asked_without_advice_when_it_fails_or_takes_too_long(
    problem: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    async def fail(*_: Any, **__: Any) -> Any:
        if problem is not None:
            raise problem
        await asyncio.Event().wait()

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.advice)
        return True

    monkeypatch.setattr(ProgramReader, "find_findings", fail)
    monkeypatch.setattr("gloveport.bridge.run_approvals.MAX_ADVICE_SECONDS", 0.01)
    async with Gloveport(tools=[pay], on_approval=approve, spare=1) as port:
        assert (await port.run("({}).__proto__; return await tools.pay({amount: 1})")).value == "paid 1"
    assert asked == [()]


async def test_arguments_that_a_person_has_changed_are_decided_on_again() -> None:
    rules = [Rule("local.pay", "deny", when="args.amount > 100", reason="too much")]
    async with Gloveport(
        tools=[pay], rules=rules, on_approval=lambda request: Answer(True, "ada", args={"amount": 500}), spare=1
    ) as port:
        outcome = await port.run("return await tools.pay({amount: 1}).catch((e) => e.message)")
    assert (outcome.value, PAID) == ("`tools.pay` is not allowed: too much", [])


async def test_a_run_that_is_cancelled_while_it_waits_can_be_approved_no_more(tmp_path: Any) -> None:
    async with Gloveport(tools=[pay], store=tmp_path / "store.sqlite", spare=1) as port:
        asked = asyncio.Event()
        port.approvals.listen(lambda what, request: asked.set())
        run = asyncio.ensure_future(port.run("return await tools.pay({amount: 1})"))
        await asked.wait()
        (request,) = port.approvals.waiting
        run.cancel()
        await asyncio.wait([run])
        with pytest.raises(ApprovalError, match="no request"):
            port.approvals.answer(request.id, request.digest, Answer(True, "ada"))
    assert PAID == []


async def test_a_program_that_has_ended_asks_nobody_any_more() -> None:
    """One call is denied and not caught: the others are withdrawn."""
    asked: list[ApprovalRequest] = []
    denied = asyncio.Event()

    async def answer(request: ApprovalRequest) -> bool:
        asked.append(request)
        if len(asked) == 3:
            denied.set()
        await denied.wait()
        if request.args["amount"] == 0:
            return False
        return await asyncio.Event().wait()

    async with Gloveport(tools=[pay], on_approval=answer, spare=1) as port:
        outcome = await port.run("await Promise.all([0, 1, 2].map((n) => tools.pay({amount: n})))")
        assert port.approvals.waiting == ()
    assert outcome.error is not None
    assert outcome.error.code == "denied"
    assert (len(asked), PAID) == (3, [])
    assert [call.status for call in outcome.calls] == ["failed"] * 3
    assert [warning for warning in outcome.warnings if "ended before tools.pay did (it failed, 2 ×)" in warning]
    assert len(outcome.warnings) == 2  # the same about each call is said once


async def test_an_approval_for_a_run_does_not_cover_a_later_run_of_the_same_id() -> None:
    asked: list[str] = []

    def once(request: ApprovalRequest) -> Answer | bool:
        asked.append(request.run)
        return Answer(True, "ada", scope="run") if len(asked) == 1 else False

    async with Gloveport(tools=[pay], on_approval=once, spare=1) as port:
        code = "await tools.pay({amount: 1}); return await tools.pay({amount: 2}).catch((e) => e.code)"
        assert (await port.run(code, id="mine")).status == "completed"
        assert len(asked) == 1
        again = await port.run(code, id="mine")
        assert again.error is not None
        assert again.error.code == "denied"
    assert asked == ["mine", "mine"]
