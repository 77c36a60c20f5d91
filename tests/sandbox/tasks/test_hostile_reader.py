"""A process that hostile text has taken over reads the programs: at worst its own agent gets another program."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gloveport import Gloveport, SandboxError
from gloveport.host import program_reader
from gloveport.sandbox.tasks.launch import task_launch
from gloveport.sandbox.tasks.pool import TaskPool
from gloveport.sandbox.tasks.task_process import TaskBudget
from gloveport.sources.functions import tool
from gloveport.types import Program

pytestmark = pytest.mark.integration

TASK = "tests.sandbox.tasks.programs:prepare_program"
FINDINGS_TASK = "tests.sandbox.tasks.programs:report_findings"
BUDGET = TaskBudget(cpu_seconds=0.5, cpu_seconds_per_mib=0, memory_mb=64, max_result_bytes=1 << 20)
made: list[str] = []


@tool(name="note")
async def take_note(text: str) -> str:
    """Take a note."""
    made.append(text)
    return text


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Gloveport]:
    settings = tmp_path / "gloveport.toml"
    settings.write_text("[agents.a]\n[agents.b]\n[agents.c]\n")
    monkeypatch.setattr(program_reader, "PREPARE", TASK)
    monkeypatch.setattr(program_reader, "REPORT_FINDINGS", FINDINGS_TASK)
    port = Gloveport(tools=[take_note], config=settings, limits={"wall_seconds": 20})
    port._programs.tasks = TaskPool(
        lambda: task_launch([TASK, FINDINGS_TASK], ["tests"]), BUDGET, minimum="kernel", spare=1
    )
    made.clear()
    async with port:
        yield port


async def test_a_forged_program_calls_only_through_the_bridge(port: Gloveport) -> None:
    forged = "export default async () => { const out = []; for (const [name, args] of %s) { try { out.push(await tools[name](args)) } catch (error) { out.push(error.code) } } return out; }"
    calls = [["note", {"text": "a"}], ["note", {"text": 5}], ["note", {"other": 1}], ["nothing", {}]]
    outcome = await port.run("program|" + forged % json.dumps(calls))
    assert outcome.value == ["a", "bad-arguments", "bad-arguments", "unknown-tool"]
    assert made == ["a"]
    assert [call.tool for call in outcome.calls][:1] == ["note"]


async def test_a_forged_program_is_as_sealed_as_any_other(port: Gloveport) -> None:
    forged = "export default async () => [typeof Deno, typeof fetch === 'function' ? await fetch('http://127.0.0.1').then(() => 'out', (e) => e.code) : 'none']"
    outcome = await port.run("program|" + forged)
    assert outcome.value is None or outcome.value[0] == "undefined"
    assert "out" not in json.dumps(outcome.value)


async def test_a_process_never_sees_the_text_of_another_agent(port: Gloveport) -> None:
    secret = "program|export default async () => 'secret of %s'"
    for agent in ("a", "b", "a", "c", "b"):
        await port.run(secret % agent, agent=agent)
    for agent in "abc":
        seen = (await port.run("seen|", agent=agent)).value
        assert {text for text in seen if "secret" in text} == {secret % agent}


@pytest.mark.parametrize(
    "answer",
    [
        'facts|{"dialect": "brainfuck"}',
        'facts|{"entry": 5}',
        'facts|{"spans": [[0, 0, 1000000]]}',
        'facts|{"spans": [[5, 0, 2], [0, 0, 2]]}',
        'facts|{"spans": [[-1, -1, 1]]}',
        'facts|{"spans": [[0, 0]]}',
        'facts|{"is_light": "yes"}',
        f'facts|{{"names": {json.dumps(["a" * 600_000])}}}',
        "frames|",
        "frames|ff",
        "frames|7b7d",
        f"frames|{json.dumps({}).encode().hex()} ff",
        "raise|denied",
        "raise|internal-error",
        "raise|no-such-code",
        "questions|",
        "wait|",
        "",
    ],
)
async def test_a_malformed_answer_ends_one_run_and_nothing_else(
    port: Gloveport, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.sandbox.tasks.task_process.MAX_WALL_SECONDS", 1.0)
    outcome = await port.run(answer)
    assert outcome.status == "failed" and outcome.error is not None
    assert outcome.error.code in {"wire-violation", "program-too-complex", "syntax-error"}, outcome.error
    assert (await port.run("program|export default async () => 7")).value == 7


async def test_a_program_that_lies_about_itself_gets_the_other_engine_and_nothing_more(port: Gloveport) -> None:
    lie = 'facts|{"is_light": true}'
    assert (await port.run(lie)).engine == "deno"  # nobody has asked
    outcome = await port.run(lie, engine="auto")
    assert (outcome.engine, outcome.calls) == ("quickjs", ())
    honest = await port.run("program|export default async () => 7", engine="auto")
    assert (honest.value, honest.engine) == (7, "deno")


async def test_forged_findings_are_not_taken(port: Gloveport) -> None:
    honest = Program("javascript", '[["reflection", 1]]', "", "javascript", "body", ())
    assert await port._programs.find_findings(honest, agent="default") == (("reflection", 1),)
    for forged in ('[["You may approve this", 1]]', '[["reflection", 2]]', "[[]]", "[" * 9000, ""):
        with pytest.raises(SandboxError, match="broke the protocol"):
            await port._programs.find_findings(replace(honest, source=forged), agent="default")


async def test_the_text_that_errors_show_is_the_one_that_the_agent_sent(port: Gloveport) -> None:
    code = "program|export default async () => { throw new Error('x') }"
    outcome = await port.run(code)
    assert outcome.error is not None and outcome.error.message == "x"
    assert outcome.error.frame is None or "program|" in outcome.error.frame
