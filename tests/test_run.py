"""A run from the outside: text in, Outcome out."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from gloveport import Event, Gloveport, GloveportError, OptionError
from tests.conftest import TOOLS, children_of


async def test_the_readme_example_gives_its_result(port: Gloveport) -> None:
    outcome = await port.run("const w = await tools.get_weather({city: 'Oslo'}); w.temp_f - 32")
    assert outcome.ok
    assert outcome.value == 18
    assert [(call.tool, call.args, call.status) for call in outcome.calls] == [("get_weather", {"city": "Oslo"}, "ok")]
    assert outcome.usage.wall_seconds > 0
    assert outcome.usage.cpu_seconds > 0
    assert outcome.usage.memory_peak_mb > 1
    assert len(outcome.run) >= 32


async def test_an_uncaught_error_is_an_outcome_with_its_place(port: Gloveport) -> None:
    outcome = await port.run("const x = 1;\nconst user: any = null;\nuser.name;")
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.code == "program-failed"
    assert outcome.error.type == "TypeError"
    assert (outcome.error.line, outcome.error.column) == (3, 6)
    assert "user.name" in (outcome.error.frame or "")
    assert "^" in (outcome.error.frame or "")


@pytest.mark.parametrize(
    ("code", "type_", "message"),
    [
        ('throw "boom"', "string", "boom"),
        ("throw null", "null", "null"),
        ("throw undefined", "undefined", "undefined"),
        ("throw {a: 1}", "object", "{ a: 1 }"),
        ('throw Error("")', "Error", "the program threw Error without a message"),
        ("await Promise.reject(7)", "number", "7"),
        ("class Odd extends Error { get message(): any { throw 1 } }\nthrow new Odd()", "Error", None),
        ("throw new Proxy(new Error('p'), { get() { throw 1 } })", "Error", None),
        ("throw new AggregateError([new Error('a')], 'several')", "AggregateError", "several"),
    ],
)
async def test_anything_thrown_is_a_failure(port: Gloveport, code: str, type_: str, message: str | None) -> None:
    outcome = await port.run(code)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert outcome.error.code == "program-failed"
    assert outcome.error.type == type_
    if message is not None:
        assert outcome.error.message == message


async def test_the_cause_chain_of_an_error_is_kept(port: Gloveport) -> None:
    outcome = await port.run("throw new Error('outer', {cause: new TypeError('inner', {cause: 'root'})})")
    assert outcome.error is not None
    assert outcome.error.cause is not None
    assert outcome.error.cause.type == "TypeError"
    assert outcome.error.cause.cause is not None
    assert outcome.error.cause.cause.message == "root"


async def test_a_failed_call_can_be_caught_with_all_its_fields(port: Gloveport) -> None:
    outcome = await port.run("""
        try { await tools.fail({message: "nope", code: "quota", data: {left: 0}}) } catch (e) {
          [e instanceof ToolError, e instanceof Error, e.name, e.code, e.tool, e.message, e.status, e.data, e.retryable]
        }
        return 1
    """)
    assert outcome.value == 1
    outcome = await port.run("""
        const r = await tools.fail({message: "nope", code: "quota", data: {left: 0}}).catch((e: any) => e);
        return [r instanceof ToolError, r instanceof Error, r.name, r.code, r.tool, r.message, r.status, r.data, r.retryable]
    """)
    assert outcome.value == [True, True, "ToolError", "quota", "fail", "nope", 418, {"left": 0}, True]


async def test_an_uncaught_failed_call_ends_the_run_at_the_line_of_the_call(port: Gloveport) -> None:
    outcome = await port.run("const a = 1;\nawait tools.fail({message: 'nope', code: 'quota'});")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.type, outcome.error.tool) == ("quota", "ToolError", "fail")
    assert outcome.error.line == 2
    assert outcome.calls[0].status == "failed"


async def test_an_exception_in_a_tool_is_a_tool_error_without_host_details(port: Gloveport) -> None:
    outcome = await port.run("await tools.crash()")
    assert outcome.error is not None
    assert outcome.error.code == "tool-failed"
    assert "KeyError" in outcome.error.message
    assert "/" not in outcome.error.message


async def test_events_arrive_as_they_happen(port: Gloveport) -> None:
    events: list[Event] = []
    outcome = await port.run("console.log('one'); await tools.add(1, 2); emit({x: 1}); 'end'", on_event=events.append)
    assert [event.kind for event in events] == ["log", "call-started", "call-ended", "emit"]
    assert {event.run for event in events} == {outcome.run}
    assert events[2].call is not None
    assert events[2].call.status == "ok"
    assert outcome.emitted == ({"x": 1},)


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


async def test_calls_that_were_not_awaited_are_finished_and_named(port: Gloveport) -> None:
    outcome = await port.run("tools.add(1, 2); 'done'")
    assert outcome.value == "done"
    assert [(call.tool, call.status) for call in outcome.calls] == [("add", "ok")]
    assert "the program ended before tools.add did (it succeeded)" in outcome.warnings[0]


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


async def test_an_unhandled_rejection_is_a_warning(port: Gloveport) -> None:
    outcome = await port.run("Promise.reject(new Error('lost')); await tools.add(1, 2)")
    assert outcome.value == 3
    assert any("unhandled rejection" in warning and "lost" in warning for warning in outcome.warnings)


async def test_a_program_that_can_never_settle_is_told_so(port: Gloveport) -> None:
    outcome = await port.run("await new Promise(() => {})")
    assert outcome.error is not None
    assert outcome.error.code == "never-settles"


async def test_timers_are_dropped_at_return(port: Gloveport) -> None:
    outcome = await port.run("setTimeout(() => console.log('late'), 60000); setInterval(() => {}, 1000); 5")
    assert outcome.value == 5
    assert outcome.logs == ()
    assert outcome.usage.wall_seconds < 30


async def test_input_is_an_argument_and_a_global(port: Gloveport) -> None:
    given: dict[str, Any] = {"a": 1, "when": None}
    assert (await port.run("input.a", input=given)).value == 1
    assert (await port.run("async (i, t) => [i.a, await t.add(i.a, 1)]", input=given)).value == [1, 2]
    assert (await port.run("async (t) => await t.add(1, 1)")).value == 2
    assert (await port.run("typeof input")).value == "undefined"


async def test_the_environment_holds_what_the_run_was_given(port: Gloveport) -> None:
    assert (await port.run("process.env", env={"REGION": "eu"})).value == {"REGION": "eu"}
    assert (await port.run("process.env")).value == {}


async def test_cancelling_the_caller_cancels_the_run_and_its_calls(port: Gloveport) -> None:
    started = asyncio.Event()
    cancelled = asyncio.Event()

    async def hang() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with Gloveport(tools=[hang], spare=0) as own:
        task = asyncio.create_task(own.run("await tools.hang()"))
        await started.wait()
        before = children_of(threading.get_native_id())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()
        assert len(children_of(threading.get_native_id())) < len(before)


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


async def test_a_bare_object_comes_back_as_data(port: Gloveport) -> None:
    assert (await port.run("{a: 1, b: 2}")).value == {"a": 1, "b": 2}


async def test_a_function_result_is_refused_with_its_path(port: Gloveport) -> None:
    outcome = await port.run("return {rows: [1, {onClick: () => 1}]}")
    assert outcome.error is not None
    assert outcome.error.code == "bad-value"
    assert outcome.error.message.startswith("result.rows[1].onClick is a function")
