"""A call through the bridge: look-up, arguments, policy, result and record."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from gloveport.bridge import CallLimit
from gloveport.catalog import Catalog
from gloveport.errors import OptionError, ToolError
from gloveport.rules.budgets import Budget, BudgetCounts
from gloveport.sources.functions import tool
from gloveport.types import CallRecord, CallRequest, Decision, Limits, Tool, ToolCall

from .support import FakeSource, call, port, refused


async def get_weather(city: str, units: str = "c", days: int | None = None) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "units": units, "days": days}


async def nothing() -> str:
    return "nothing"


async def store(record: dict[str, Any]) -> dict[str, Any]:
    return record


async def set_value(value: int | None) -> Any:
    return value


async def anything(value: Any = "default") -> Any:
    return value


OSLO = {"city": "Oslo", "units": "c", "days": None}


@pytest.mark.parametrize(
    ("name", "args", "answer"),
    [
        ("get_weather", [{"city": "Oslo"}], OSLO),
        ("local.get_weather", [{"city": "Oslo"}], OSLO),
        ("local:get_weather", [{"city": "Oslo"}], OSLO),
        ("get_weather", ["Oslo"], OSLO),
        ("get_weather", ["Oslo", "f"], OSLO | {"units": "f"}),
        ("get_weather", ["Oslo", None, None], OSLO),
        ("get_weather", ["Oslo", "f", 3, None], OSLO | {"units": "f", "days": 3}),
        ("nothing", [], "nothing"),
        ("nothing", [{}], "nothing"),
        ("nothing", [None], "nothing"),
        ("store", [{"record": {"a": 1}}], {"a": 1}),
        ("store", [{"a": 1, "b": 2}], {"a": 1, "b": 2}),
        ("store", [{"record": 5}], {"record": 5}),
        ("set_value", [None], None),
        ("set_value", [7], 7),
        ("anything", [[1, 2]], [1, 2]),
        ("anything", [{"value": {"x": 1}}], {"x": 1}),
        ("anything", [{"x": 1}], {"x": 1}),
        ("anything", [], "default"),
        ("anything", [2**80], 2**80),
        ("anything", [{"value": {1: "a"}}], {1: "a"}),
        ("anything", [{"value": {1}}], {1}),
        ("anything", [datetime(2026, 1, 2, tzinfo=UTC)], datetime(2026, 1, 2, tzinfo=UTC)),
        ("anything", [b"\0\xff"], b"\0\xff"),
    ],
)
async def test_a_call_takes_one_object_or_positionals(name: str, args: list[Any], answer: Any) -> None:
    assert await call(port(get_weather, nothing, store, set_value, anything), name, *args) == answer


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([{"cty": "Oslo"}], ("`cty`", "did you mean `city`?", "`city` is missing", "units?: string")),
        ([{"city": 3}], ("`city` must be a string, not a number",)),
        ([{"city": "Oslo", "days": "x"}], ("`days` must be an integer or null, not a string",)),
        ([], ("`city` is missing",)),
        ([None], ("`city` must be a string, not null",)),
        (["a", "b", 3, 4], ("4 values", "at most 3")),
        ([{"city": "Oslo", "__proto__": {}}], ("`__proto__`",)),
        ([{"city": float("nan")}], ("`city`",)),
        ([{"city": b"x"}], ("city",)),
        ([{"city": {"a": 1}}], ("`city` must be a string, not an object",)),
        ([{(1, 2): 3}], ("key",)),
    ],
)
async def test_bad_arguments_are_reported_by_path_with_the_parameters(args: list[Any], told: tuple[str, ...]) -> None:
    error = await refused(port(get_weather), "get_weather", *args)
    assert error.code == "bad-arguments"
    for words in told:
        assert words in error.message


async def test_a_tool_without_parameters_takes_nothing() -> None:
    error = await refused(port(nothing), "nothing", {"a": 1})
    assert "there is no `a`" in error.message
    assert "takes no arguments" in error.message


async def test_arguments_nested_too_deeply_are_refused_not_walked() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    error = await refused(port(anything), "anything", deep)
    assert "nested too deeply" in error.message
    while deep:  # freed level by level: some Python versions overflow when they free it recursively
        deep = deep.pop()


async def test_nested_fields_are_named_with_their_path() -> None:
    @dataclass
    class Row:
        n: int
        name: str = ""

    async def save(rows: list[Row]) -> int:
        return len(rows)

    save.__annotations__["rows"] = list[Row]
    error = await refused(port(save), "save", {"rows": [{"n": 1}, {"n": 2, "nam": "x"}]})
    assert "`rows[1].nam` (did you mean `rows[1].name`?)" in error.message


@pytest.mark.parametrize("name", ["get_wether", "local.get_wether", "getWeather"])
async def test_an_unknown_tool_is_reported_with_a_suggestion(name: str) -> None:
    error = await refused(port(get_weather), name)
    assert error.code == "unknown-tool"
    assert error.message == f"no tool `tools.{name}`; did you mean `tools.get_weather`?"


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "local", "", "get_weather.call", "x" * 10_000])
async def test_what_is_not_a_tool_is_never_called(name: str) -> None:
    error = await refused(port(get_weather), name)
    assert error.code == "unknown-tool"
    assert len(error.message) < 400


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    seen: set[int]


class Pair(NamedTuple):
    a: int
    b: Any


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"n": (1, 2)}


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


MOMENT = datetime(2026, 1, 2, 3, tzinfo=UTC)
RESULTS = [
    (None, None),
    (2**70, 2**70),
    ((1, (2, [3, (4,)])), [1, [2, [3, [4]]]]),
    (Point(1, {2}), {"x": 1, "seen": {2}}),
    ({"p": [Point(1, set())]}, {"p": [{"x": 1, "seen": set()}]}),
    (Colour.RED, "red"),
    ({Colour.RED: 1}, {"red": 1}),
    (Pair(1, Pair(2, None)), [1, [2, None]]),
    (Model(), {"n": [1, 2]}),
    (MOMENT, MOMENT),
    (date(2026, 1, 2), "2026-01-02"),
    (b"x", b"x"),
    (bytearray(b"x"), b"x"),
    ([memoryview(b"x")], [b"x"]),
    (Decimal("1.10"), "1.10"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ({1: "a"}, {1: "a"}),
    ([Text("x")], ["x"]),
]


@pytest.mark.parametrize(("result", "expected"), RESULTS, ids=lambda value: str(value).partition(" at 0x")[0][:30])
async def test_results_become_plain_data(result: Any, expected: Any) -> None:
    async def give() -> Any:
        return result

    found = await call(port(give), "give")
    assert found == expected
    assert type(found) is type(expected)


def cyclic() -> Any:
    rows: list[Any] = [1]
    rows.append({"again": rows})
    return {"rows": rows}


def deep() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


class Spiteful:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"rows": [0, 1, 2, threading.Lock()]}, "result.rows[3] is a lock"),
        (object(), "result is an object"),
        ({"a": {"on_click": print}}, "result.a.on_click is a builtin_function_or_method"),
        (Point(1, object()), "result.seen is an object"),  # type: ignore[arg-type]
        ({"a": {(1, 2): 3}}, "result.a has a key that is not a simple value"),
        (cyclic(), "contains itself"),
        (deep(), "is nested too deeply"),
        ([Spiteful()], "can't be read"),
        (Path("/etc/passwd"), "PosixPath"),
    ],
    ids=lambda value: str(type(value)),
)
async def test_a_result_that_is_not_plain_data_is_an_error_that_names_its_path(result: Any, told: str) -> None:
    async def give() -> Any:
        return result

    error = await refused(port(give), "give")
    assert error.code == "bad-value"
    assert told in error.message
    assert len(error.message) < 1000


class Says:
    """A policy with one verdict, which changes the arguments that it is shown."""

    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict
        self.asked: list[Any] = []
        self.counts = BudgetCounts()

    def settled(self, tool: Tool, agent: str) -> Decision | None:
        return None

    def decide(self, request: CallRequest) -> Decision:
        args = request.args
        self.asked.append((request.tool.address, dict(args) if args is not None else None))
        if isinstance(args, dict):
            args["city"] = "Rome"
        return Decision(self.verdict, "rule 7")

    def budgets_of(self, tool: Tool, agent: str) -> tuple[Budget, ...]:
        return ()


@pytest.mark.parametrize("verdict", ["deny", "ask"])
async def test_a_call_that_the_policy_does_not_allow_is_not_made(verdict: str) -> None:
    source = FakeSource("far", [Tool("far.away", "", {"type": "object", "properties": {"city": {}}})])
    run = port(sources=[source], policy=Says(verdict))
    error = await refused(run, "far.away", {"city": "Oslo"})
    assert error.code == "denied"
    assert "rule 7" in error.message
    assert source.sent == []
    assert [(record.tool, record.status) for record in run.records] == [("far.away", "failed")]


async def test_the_validated_arguments_are_sent_even_if_a_listener_changes_its_copy() -> None:
    def on_call(kind: str, record: CallRecord) -> None:
        record.args["city"] = "Paris"

    source = FakeSource("far", [Tool("far.away", "", {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}})])
    policy = Says("allow")
    given = {"city": "Oslo"}
    await call(port(sources=[source], policy=policy, on_call=on_call), "far.away", given)
    assert source.sent == [{"city": "Oslo"}]
    assert policy.asked == [("far.away", {"city": "Oslo"})]
    assert source.sent[0] is not given


async def test_a_function_that_changes_its_arguments_does_not_change_the_record() -> None:
    async def eat(value: Any) -> None:
        value.clear()

    run = port(eat)
    await call(run, "eat", {"value": {"a": 1}})
    assert run.records[0].args == {"value": {"a": 1}}


async def test_calls_are_recorded_with_their_times_and_reported_as_they_happen() -> None:
    told: list[tuple[str, CallRecord]] = []

    async def fails(n: int) -> None:
        raise KeyError(n)

    run = port(get_weather, fails, on_call=lambda kind, record: told.append((kind, record)))
    await call(run, "get_weather", "Oslo", id=7)
    await refused(run, "fails", 1)
    await refused(run, "fails", "x")
    await refused(run, "gone")
    first, second = run.records
    assert (first.id, first.tool, first.args, first.status) == (7, "get_weather", {"city": "Oslo"}, "ok")
    assert first.seconds is not None
    assert second.started >= first.started >= 0
    assert second.status == "failed"
    assert (second.error or "").startswith("tool-failed: KeyError: 1 (test_calls.py:")
    assert [(kind, record.status) for kind, record in told] == [
        ("call-started", "running"),
        ("call-ended", "ok"),
        ("call-started", "running"),
        ("call-ended", "failed"),
    ]


async def test_records_keep_a_bounded_size_of_arguments() -> None:
    run = port(anything)
    await run.call(ToolCall(1, "anything", ["x" * 500_000], 500_000))
    assert "not kept" in str(run.records[0].args)
    for _ in range(80):
        await run.call(ToolCall(1, "anything", ["x" * 30_000], 30_000))
    kept = [record for record in run.records if "value" in record.args]
    assert len(kept) == (2 * 2**20 - 500_000) // 30_000
    assert "not kept" in str(run.records[-1].args)


async def test_the_call_after_the_last_one_ends_the_run_and_is_not_a_tool_error() -> None:
    run = port(nothing, max_calls=3)
    await call(run, "nothing")
    await refused(run, "gone")
    await refused(run, "nothing", 1, 2)
    for _ in range(2):
        with pytest.raises(CallLimit) as limit:
            await call(run, "nothing")
        assert limit.value.code == "call-limit"
        assert not isinstance(limit.value, ToolError)
    assert len(run.records) == 1


async def test_ten_thousand_bad_calls_are_refused_quickly() -> None:
    run = port(get_weather, max_calls=100)
    began = time.perf_counter()
    limits = 0
    for n in range(10_000):
        try:
            await call(run, f"get_weath{n}")
        except CallLimit:
            limits += 1
        except ToolError:
            pass
    assert limits == 9_900
    assert time.perf_counter() - began < 60


async def test_a_broken_schema_spoils_only_its_own_tool() -> None:
    broken = [
        Tool("far.a", "", {"type": "object", "properties": {"p": {"type": "nonsense"}}}),
        Tool("far.b", "", {"type": "object", "properties": {"p": {"$ref": "file:///etc/passwd"}}}),
        Tool("far.c", "", {"type": "object", "properties": {"p": {"$ref": "http://127.0.0.1:1/x"}}}),
        Tool("far.d", "", {"type": "object", "properties": {"p": {"pattern": "("}}}),
    ]
    run = port(nothing, sources=[FakeSource("far", broken)])
    for name in "abcd":
        error = await refused(run, f"far.{name}", {})
        assert "schema" in error.message
    assert await call(run, "nothing") == "nothing"


async def test_a_backtracking_pattern_does_not_stall_the_host() -> None:
    patterns = {"a": "^(a+)+$", "b": "^(?=(a+)+b)c", "c": r"^(a|aa)+\1$"}
    tools = [Tool(f"far.{n}", "", {"properties": {"p": {"type": "string", "pattern": p}}}) for n, p in patterns.items()]
    run = port(sources=[FakeSource("far", tools)])
    began = time.perf_counter()
    for name in patterns:
        await refused(run, f"far.{name}", {"p": "a" * 50_000 + "!"})
    assert time.perf_counter() - began < 30


BUILTINS = [
    ("search", ["weather"], lambda found: found[0] == {
        "path": "get_weather", "description": "The weather in a city.", "kind": "function", "writes": False, "approval": False}),
    ("search", [{"query": "weather", "limit": 1, "source": "local"}], lambda found: len(found) == 1),
    ("search", [], lambda found: len(found) == 2),
    ("describe", ["get_weather"], lambda found: "city: string" in found["typescript"] and type(found["parameters"]) is list),
    ("describe", [{"path": "tools.get_weather"}], lambda found: found["path"] == "get_weather"),
    ("sources", [], lambda found: found == [{"name": "local", "kind": "function", "tools": 2}]),
]  # fmt: skip


async def test_describe_shows_a_part_of_a_result() -> None:
    def forecast() -> list[dict[str, dict[str, float]]]: ...

    run = port(forecast)
    for args in (["forecast", {"at": "[].day"}], [{"path": "forecast", "at": "[].day"}]):
        found = await call(run, "describe", *args)
        assert "type Part = Record<string, number>;" in found["typescript"]
        assert found["python"].endswith("[].day in the result of tools.forecast: dict[str, float]\n")


@pytest.mark.parametrize(
    ("name", "args", "expected"), BUILTINS, ids=lambda value: "" if callable(value) else str(value)[:30]
)
async def test_the_root_of_tools_answers_about_itself(name: str, args: list[Any], expected: Any) -> None:
    run = port(get_weather, nothing, max_calls=0)
    assert expected(await call(run, name, *args))
    assert expected(await run.call_sync(name, args))
    assert run.records == ()


async def test_sources_can_be_listed_as_in_executor() -> None:
    run = port(get_weather)
    assert await call(run, "executor.sources.list") == await call(run, "sources")


async def test_search_says_which_tools_need_approval() -> None:
    (found,) = await call(port(get_weather, policy=Says("ask")), "search", "weather")
    assert found["approval"] is True


@pytest.mark.parametrize(
    ("name", "args", "asked"),
    [
        ("search", ["weather"], "search"),
        ("describe", ["get_weather"], "describe"),
        ("describe", ["get_wether"], "suggest"),
        ("interface", ["get_weather"], "describe"),
        ("interfaces", [], "path_of"),
    ],
)
async def test_what_goes_through_the_catalog_is_answered_away_from_the_event_loop(
    name: str, args: list[Any], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    answer = getattr(Catalog, asked)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.current_thread())
        return answer(*args, **kwargs)

    monkeypatch.setattr(Catalog, asked, recorded)
    with contextlib.suppress(ToolError):
        await port(get_weather).call_sync(name, args)
    assert threads
    assert threading.current_thread() not in threads


async def test_the_prelude_reads_names_and_interfaces_synchronously() -> None:
    run = port(get_weather, nothing)
    assert await run.call_sync("names", []) == ["local", "get_weather", "nothing"]
    assert await run.call_sync("names", ["local"]) == ["get_weather", "nothing"]
    assert await run.call_sync("names", [5]) == ["local", "get_weather", "nothing"]
    assert "get_weather(args: {" in await run.call_sync("interfaces", [])
    assert "get_weather(args: {" in await run.call_sync("interface", ["get_weather"])
    assert await run.call_sync("interface", ["gone"]) is None


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("search", [5], "bad-arguments"),
        ("search", [{"query": "x", "limit": 0}], "bad-arguments"),
        ("search", [{"query": "x", "limit": True}], "bad-arguments"),
        ("search", [{"query": {}}], "bad-arguments"),
        ("describe", [], "bad-arguments"),
        ("describe", ["get_wether"], "unknown-tool"),
        ("describe", ["get_weather", {"at": "x"}], "bad-arguments"),
        ("describe", ["get_weather", {"at": 1}], "bad-arguments"),
        ("get_weather", ["Oslo"], "unknown-tool"),
        ("__class__", [], "unknown-tool"),
    ],
)
async def test_a_question_that_makes_no_sense_is_a_tool_error(name: str, args: list[Any], code: str) -> None:
    with pytest.raises(ToolError) as error:
        await port(get_weather).call_sync(name, args)
    assert error.value.code == code


async def test_questions_have_a_budget_too() -> None:
    run = port(get_weather)
    with pytest.raises(CallLimit):
        for _ in range(10_001):
            await run.call_sync("names", [])


async def test_timeouts_and_task_groups_work_in_a_function() -> None:
    tasks: list[Any] = []

    async def times_out() -> str:
        tasks.append(asyncio.current_task())
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            tasks.append(asyncio.current_task())
            return "timed out"
        return "never"

    async def groups() -> int:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.sleep(0, 5))
        return task.result()

    assert await call(port(times_out), "times_out") == "timed out"
    assert await call(port(groups), "groups") == 5
    assert tasks[0] is tasks[1]


def test_sources_are_called_from_the_bridge_and_nowhere_else() -> None:
    root = Path(__file__).parents[2] / "src" / "gloveport"
    callers = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "call" and "source" in ast.unparse(node.value).lower():
                callers.add(path.relative_to(root).as_posix())
    # The executor's source is where the calls of a caller's tools arrive that the bridge has let through.
    assert callers == {"bridge/arguments.py", "surfaces/agents/executor.py"}


def test_the_port_of_a_run_needs_limits_that_make_sense() -> None:
    with pytest.raises(OptionError):
        Limits(max_concurrent_calls=0)


async def test_a_sync_function_and_an_inline_one_answer_alike() -> None:
    @tool(inline=True)
    def quick(n: int) -> tuple[int, int]:
        return n, n

    def slow(n: int) -> tuple[int, int]:
        return n, n

    run = port(quick, slow)
    assert await call(run, "quick", 2) == await call(run, "slow", 2) == [2, 2]


async def test_a_result_of_too_many_values_is_refused_with_what_to_do() -> None:
    def many() -> list[int]:
        return [0] * 1_000_001

    error = await refused(port(many), "many")
    assert error.code == "bad-value"
    assert "holds more than 1,000,000 values" in error.message
    assert "ask for less" in str(error.hint)


async def test_a_search_in_a_source_that_does_not_exist_is_refused_with_those_that_do() -> None:
    run = port(sources=[FakeSource("shop", [Tool("shop.read", "Read.", {"type": "object"}, kind="own")])])
    error = await refused(run, "search", {"query": "read", "source": "shopp"})
    assert error.code == "bad-arguments"
    assert "has no source `shopp`; the sources are shop" in error.message
    assert [row["name"] for row in await call(run, "sources")] == ["shop"]
