"""A run from the outside: text in, Outcome out."""

import asyncio
import logging
import threading

import pytest

from gloveport import Event, Gloveport, GloveportError, OptionError, ToolError
from tests.conftest import TOOLS

pytestmark = pytest.mark.integration


async def test_the_readme_example_gives_its_result(port: Gloveport) -> None:
    outcome = await port.run("const w = await tools.get_weather({city: 'Oslo'}); w.temp_f - 32")
    assert outcome.ok
    assert outcome.value == 18
    assert [(call.tool, call.args, call.status) for call in outcome.calls] == [("get_weather", {"city": "Oslo"}, "ok")]
    assert outcome.usage.wall_seconds > 0
    assert outcome.usage.cpu_seconds > 0
    assert outcome.usage.memory_peak_mb > 1
    assert len(outcome.run) >= 32


async def test_a_listener_that_raises_does_not_end_the_run(port: Gloveport, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_event: Event) -> None:
        raise RuntimeError("listener")

    outcome = await port.run("console.log(1); 5", on_event=broken)
    assert outcome.value == 5
    assert "on_event raised" in caplog.text


async def test_logs_are_levelled_and_readable(port: Gloveport) -> None:
    outcome = await port.run(
        "console.log('a', {b: [1, {c: 2}]}); console.info(1); console.warn('w'); console.error(new Error('e')); console.debug(null)"
    )
    assert [(line.level, line.text.split("\n")[0]) for line in outcome.logs] == [
        ("log", "a { b: [ 1, { c: 2 } ] }"),
        ("info", "1"),
        ("warn", "w"),
        ("error", "Error: e"),
        ("debug", "null"),
    ]


async def test_a_sync_tool_that_outlives_its_run_is_named_and_not_called_failed() -> None:
    begun, gate = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        gate.wait(60)

    async with Gloveport(tools=[stuck], spare=0) as own:
        events: list[Event] = []
        outcome = await own.run("await tools.stuck()", limits={"wall_seconds": 0.5}, on_event=events.append)
        assert begun.is_set()
        gate.set()
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert [(call.status, call.seconds) for call in outcome.calls] == [("running", None)]
    assert outcome.warnings == ("tools.stuck can't be stopped and still runs (1 ×)",)
    assert [event.kind for event in events] == ["call-started"]


async def test_a_search_that_was_cut_says_how_many_there_are() -> None:
    async with Gloveport(tools=[{f"tool_{n}": lambda: 1 for n in range(30)}], spare=0) as own:  # type: ignore[list-item]
        outcome = await own.run("return [(await tools.search('')).length, (await tools.search({limit: 50})).length]")
        assert outcome.value == [10, 30]
        assert outcome.warnings == ("tools.search('') gave 10 of 30 tools: narrow it down, or raise its limit",)
        assert (await own.run("(await tools.search('nothing like it')).length")).warnings == ()


async def test_runs_do_not_wait_for_each_other(port: Gloveport) -> None:
    outcomes = await asyncio.gather(*(port.run(f"await tools.add({index}, 1)") for index in range(8)))
    assert [outcome.value for outcome in outcomes] == list(range(1, 9))
    assert len({outcome.run for outcome in outcomes}) == 8


def test_run_sync_works_without_an_event_loop() -> None:
    with Gloveport(tools=TOOLS, spare=0) as port:
        assert port.run_sync("await tools.add(2, 3)").value == 5
        assert port.run_sync("input + 1", input=1).value == 2


def test_run_sync_needs_no_with() -> None:
    port = Gloveport(spare=0)
    assert port.run_sync("1 + 1").value == 2
    port.close_sync()
    with pytest.raises(GloveportError) as caught:
        port.run_sync("1")
    assert caught.value.code == "closed"


async def test_run_sync_inside_its_own_loop_is_refused_instead_of_hanging(port: Gloveport) -> None:
    with pytest.raises(OptionError, match="own event loop"):
        port.run_sync("1")


async def test_a_port_can_be_used_from_another_loop() -> None:
    with Gloveport(tools=TOOLS, spare=0) as port:
        assert (await port.run("await tools.add(2, 2)")).value == 4


async def test_code_is_logged_only_when_asked(port: Gloveport, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "gloveport"):
        await port.run("'quiet please'")
        assert "quiet please" not in caplog.text
        async with Gloveport(log_code=True, spare=0) as loud:
            await loud.run("'say it'")
    assert "say it" in caplog.text


async def test_the_errors_of_a_single_call_name_nothing_that_only_programs_have() -> None:
    async with Gloveport(tools=TOOLS) as port:
        for tool, args, code, told in (
            ("add", {"a": "one", "b": 2}, "bad-arguments", "`a` must be an integer"),
            ("ad", {}, "unknown-tool", "did you mean `tools.add`?"),
        ):
            with pytest.raises(ToolError, match=told) as caught:
                await port.call(tool, args)
            assert (caught.value.code, caught.value.hint) == (code, None)
        outcome = await port.run("const args: any = {a: 'one', b: 2}; await tools.add(args)")
        assert outcome.error is not None
        assert "tools.describe" in (outcome.error.hint or "")
