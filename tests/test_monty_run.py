"""Python programs in Monty: the same contract as in CPython, as far as its language goes; the rest is told, not guessed."""

import asyncio
import builtins
import sys
from datetime import UTC, datetime
from typing import Any

import pydantic_monty
import pytest

from gloveport import ErrorValue, Gloveport, OptionError
from gloveport.sandbox.engines.monty.subset import IN_ASYNCIO, MISSING_BUILTINS, MODULES
from tests.sandbox.jail.stage import play


async def value_of(port: Gloveport, code: str, **options: Any) -> Any:
    outcome = await port.run(code, language="python", engine="monty", **options)
    assert outcome.error is None, outcome.error
    return outcome.value


@pytest.mark.parametrize(
    "code",
    [
        "await tools.add(a=1, b=2)",
        "await tools.add({'a': 1, 'b': 2})",
        "await tools.add(1, 2)",
        "await tools.local.add(a=1, b=2)",
        "await codemode.add(a=1, b=2)",
        "await local.add(a=1, b=2)",
        "await tools['local']['add'](1, 2)",
        "name = 'add'\nawait tools.local[name](1, 2)",
        "add = tools.local.add\nawait add(a=1, b=2)",
        "tools.add(a=1, b=2)",
        "return tools.add(a=1, b=2)",
        "return await tools.add(a=1, b=2)",
        "if True:\n    return await tools.add(a=1, b=2)\n4",
        "async def main():\n    return await tools.add(a=1, b=2)",
        "async def main(tools):\n    return await tools.add(a=1, b=2)",
        "def main():\n    return tools.add(a=1, b=2)",
        "async def anything(given):\n    return await given.add(a=1, b=2)",
        "Here is the program:\n```python\nx = await tools.add(a=1, b=2)\nx\n```\nDone.",
        "import asyncio\nsum(await asyncio.gather(tools.add(a=1, b=0), tools.add(a=2, b=0)))",
        "import asyncio\nasyncio.run(tools.add(a=1, b=2))",
        "call = tools.add(a=1, b=2)\nother = tools.add(a=5, b=6)\nawait call",
        "class A:\n    def __init__(self, x):\n        self.x = x\nA(3).x",
        "await step('add', lambda: tools.add(1, 2))",
        "state['n'] = 3\nstate['n']",
    ],
)
async def test_every_form_gives_its_value(port: Gloveport, code: str) -> None:
    assert await value_of(port, code) == 3


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("async def main(input, tools):\n    return await tools.add(a=input, b=2)", 3),
        ("async def main(n):\n    return n + 2", 3),
        ("def main(tools, input):\n    return input + 2", 3),
        ("async def main(*given):\n    return len(given) + given[0]", 3),
        ("input + 2", 3),
    ],
)
async def test_a_function_is_called_with_the_input_and_the_tools(port: Gloveport, code: str, value: int) -> None:
    assert await value_of(port, code, input=1) == value


async def test_an_empty_program_returns_nothing(port: Gloveport) -> None:
    assert await value_of(port, "") is None


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("[None, True, 1.5, 'é', 2**70, -2**70, -5]", [None, True, 1.5, "é", 2**70, -(2**70), -5]),
        ("{'$': 1, 'b': b'ab'}", {"$": 1, "b": b"ab"}),
        ("{1: 'a'}", {1: "a"}),
        ("{1, 2}", {1, 2}),
        ("float('inf')", float("inf")),
        ("ValueError('no')", ErrorValue("ValueError", "no")),
        ("'x' * 300000", "x" * 300000),
    ],
)
async def test_values_cross_both_ways(port: Gloveport, script: str, value: Any) -> None:
    assert await value_of(port, script) == value
    given = await value_of(port, "input", input=value)
    assert given == value or (isinstance(value, ErrorValue) and given.message == value.message)
    assert await value_of(port, f"await tools.echo(value={script})") == value or isinstance(value, ErrorValue)


async def test_what_has_a_plain_form_crosses_as_that(port: Gloveport) -> None:
    code = """
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from collections import deque, namedtuple

@dataclass
class Point:
    x: int
    y: int = 2

Pair = namedtuple("Pair", "a b")
[Point(1), Pair(1, 2), deque([1]), date(2020, 1, 2), time(1, 2), timedelta(milliseconds=1500), Decimal("1.50"), Path("/a"), (1,),
 datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))]
"""
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    plain = [{"x": 1, "y": 2}, [1, 2], [1], "2020-01-02", "01:02:00", 1.5, "1.50", "/a", [1], moment]
    assert await value_of(port, code) == plain


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("{'rows': [1, {'f': lambda: 1}]}", "result.rows[1].f is a function: only data can cross"),
        ("async def f(): pass\n[f()]", "result[0] is a coroutine: await it"),
        ("import json\njson", "result is a module: only data can cross"),
        (
            "class A: pass\n{'a': A()}",
            "result.a is an object of class A: only data can cross; make it a dict or a dataclass",
        ),
        ("[int]", "result[0] is a class: only data can cross"),
        ("{(1, 2): 3}", "result has a key of class tuple: only text, numbers, dates and bytes can be keys"),
        ("a = [1]\na.append(a)\na", "result[1] is nested too deeply, or contains itself"),
        ("tools.local", "result is a tool, or a group of tools: call it"),
        ("iter([1])", "result is an iterator: use list(…) to make it a list"),
    ],
)
async def test_what_is_no_data_is_told_with_its_path(port: Gloveport, code: str, message: str) -> None:
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message[: len(message)]) == ("bad-value", message)


async def test_an_argument_that_is_no_data_fails_its_call(port: Gloveport) -> None:
    code = "try:\n    await tools.echo(value=[print])\nexcept ToolError as e:\n    r = [e.code, str(e)]\nr"
    assert await value_of(port, code) == [
        "bad-value",
        "tools.echo: argument.value[0] is a function: only data can cross; call it, or return what it gives",
    ]


async def test_print_is_captured_line_by_line_and_emit_goes_to_the_user(port: Gloveport) -> None:
    code = "import sys\nprint('a\\nb', 1)\nprint('no', file=sys.stderr)\nprint('end', end='')\nemit({'x': 1})\nemit(2)"
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is None
    assert [(line.level, line.text) for line in outcome.logs] == [
        ("log", "a"),
        ("log", "b 1"),
        ("error", "no"),
        ("log", "end"),
    ]
    assert outcome.emitted == ({"x": 1}, 2)


async def test_errors_have_their_place_in_the_agents_text(port: Gloveport) -> None:
    code = "Look:\n```python\ndef f(é, x):\n    return é + x['gone']\ntry:\n    1 / 0\nexcept ArithmeticError as e:\n    pass\nf('ü', {})\n```"
    outcome = await port.run(code, language="python", engine="monty")
    error = outcome.error
    assert error is not None
    assert (error.code, error.type, error.line, error.column) == ("program-failed", "KeyError", 4, 16)
    assert "x['gone']" in (error.frame or "")


# Errors of calls.


async def test_a_failed_call_can_be_caught_with_its_fields(port: Gloveport) -> None:
    code = """
try:
    await tools.fail(message='nope', code='quota', data={'left': [0]})
except (KeyError, ToolError) as e:
    if isinstance(e, ToolError):
        r = [e.code, e.tool, str(e), e.status, e.data, e.retryable, repr(e), type(e).__name__]
r
"""
    fields = ["quota", "fail", "nope", 418, {"left": [0]}, True, "ToolError('nope')", "ToolError"]
    assert await value_of(port, code) == fields


@pytest.mark.parametrize("kind", ["ToolError", "Exception", "(ValueError, ToolError)", "BaseException"])
async def test_a_failed_call_is_an_exception_like_others(port: Gloveport, kind: str) -> None:
    code = f"try:\n    await tools.fail(code='quota')\nexcept {kind} as e: r = e.code\nr"
    assert await value_of(port, code) == "quota"


async def test_other_exceptions_are_caught_as_what_they_are(port: Gloveport) -> None:
    code = "try:\n    {}['x']\nexcept ToolError:\n    r = 1\nexcept KeyError as e:\n    r = [type(e).__name__, isinstance(e, ToolError)]\nr"
    assert await value_of(port, code) == ["KeyError", False]


@pytest.mark.parametrize("again", ["raise", "raise e", "raise e from None"])
async def test_a_failed_call_can_be_raised_again(port: Gloveport, again: str) -> None:
    code = f"try:\n    await tools.fail(message='nope', code='quota')\nexcept ToolError as e:\n    {again}"
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is not None
    error = outcome.error
    assert (error.code, error.type, error.message, error.tool) == ("quota", "ToolError", "nope", "fail")


async def test_a_program_may_raise_a_tool_error_itself(port: Gloveport) -> None:
    code = "def f():\n    raise ToolError('mine', code='own')\ntry:\n    f()\nexcept ToolError as e:\n    r = [str(e), e.code]\nr"
    assert await value_of(port, code) == ["mine", "own"]
    outcome = await port.run("raise ToolError('mine', code='denied')", language="python", engine="monty")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.code, outcome.error.message) == ("ToolError", "program-failed", "mine")


async def test_one_of_several_parallel_calls_may_fail(port: Gloveport) -> None:
    code = """
import asyncio
async def tried(call):
    try:
        return await call
    except ToolError as e:
        return e.code
await asyncio.gather(tried(tools.add(1, 2)), tried(tools.fail(code='quota')), tried(tools.add(3, 4)))
"""
    assert await value_of(port, code) == [3, "quota", 7]


# What it finds.


async def test_search_describe_and_the_listing_of_tools_work(port: Gloveport) -> None:
    assert (await value_of(port, "await tools.search('weather')"))[0]["path"] == "get_weather"
    assert (await value_of(port, "await tools.describe('add')"))["path"] == "add"
    assert await value_of(port, "[source for source in await tools.sources()]")
    assert "add(" in await value_of(port, "__getToolInterface('add')")
    assert "add" in str(await value_of(port, "__interfaces"))


async def test_the_environment_holds_what_the_run_was_given(port: Gloveport) -> None:
    code = "import os\n[os.environ, os.getenv('A'), os.getenv('B'), os.getenv('B', 'x')]"
    assert await value_of(port, code, env={"A": "1"}) == [{"A": "1"}, "1", None, "x"]


async def test_time_is_the_hosts_and_sleeps_overlap(port: Gloveport) -> None:
    code = """
import asyncio, time
from datetime import date, datetime, timezone
began, clock = time.time(), time.monotonic()
await asyncio.gather(asyncio.sleep(0.2), asyncio.sleep(0.1), asyncio.sleep(0))
time.sleep(0.05)
seen = [time.time() - began, time.monotonic() - clock]
[seen, datetime.now(timezone.utc).timestamp() - began, date.today() == datetime.now().date()]
"""
    (spent, clocked), aware, today = await value_of(port, code)
    assert 0.25 <= spent < 30
    assert 0.25 <= clocked < 30
    assert 0.25 <= aware < 30
    assert today


async def test_a_program_that_polls_sees_its_calls_return(port: Gloveport) -> None:
    code = """
import asyncio
done = []
async def call():
    done.append(await tools.add(1, 2))
async def poll():
    turns = 0
    while not done:
        await asyncio.sleep(0)
        turns += 1
    return turns > 0
(await asyncio.gather(call(), poll()))[1]
"""
    assert await value_of(port, code) is True


async def test_calls_that_are_left_behind_are_told(port: Gloveport) -> None:
    outcome = await port.run("tools.add(1, 2)\n5", language="python", engine="monty")
    assert outcome.value == 5
    assert "ended before tools.add did" in outcome.warnings[0]


async def test_a_call_that_returns_while_another_is_awaited_is_not_lost(port: Gloveport) -> None:
    code = "a = tools.add(1, 2)\nimport asyncio\nawait asyncio.sleep(0.05)\nb = await tools.add(3, 4)\n[await a, b]"
    assert await value_of(port, code) == [3, 7]


# What Monty lacks.


@pytest.mark.parametrize(
    ("code", "named", "place"),
    [
        ("x = 1\ndef f():\n    yield 1", "generators (`yield`)", (3, 5)),
        ("x = [1]\ndel x[0]", "`del`", (2, 1)),
        ("class A(Exception): pass", "class inheritance, nor metaclasses", (1, 1)),
        ("class A:\n    @property\n    def x(self): return 1", "decorators of methods", (1, 1)),
        ("async with x as y: pass", "`async with`", (1, 1)),
        ("async for x in y: pass", "`async for`", (1, 1)),
        ("[x async for x in y]", "asynchronous comprehensions", None),
        ("try:\n    pass\nexcept* ValueError:\n    pass", "`except*`", (1, 1)),
        ("from math import *", "`from … import *`", (1, 1)),
        ("import json\nimport uuid", "module `uuid`", (2, 1)),
        ("from urllib.parse import quote", "module `urllib.parse`", (1, 1)),
        ("import asyncio\nawait asyncio.wait_for(tools.add(1, 2), 1)", "`asyncio.wait_for`", (2, 7)),
        ("x = 1\ncallable(x)", "`callable`", (2, 1)),
    ],
)
async def test_what_monty_lacks_is_named_before_the_run_with_the_engine_that_has_it(
    port: Gloveport, code: str, named: str, place: tuple[int, int] | None
) -> None:
    outcome = await port.run(f"{code}\n", language="python", engine="monty")
    error = outcome.error
    assert error is not None
    assert error.code == "engine-lacks"
    assert error.message.startswith(f"the engine `monty` has no {named}")
    assert "the engine `cpython` has it" in (error.hint or "")
    assert place is None or ((error.line, error.column) == place and "^" in (error.frame or ""))
    assert outcome.calls == ()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class A:\n    class B: pass", "class bodies containing anything other than"),
        ("e = ValueError('a')\ne.limit = 5", "exceptions with attributes"),
        ("try:\n    import uuid\nexcept KeyError:\n    pass", "module `uuid`"),
    ],
)
async def test_what_only_monty_finds_out_is_told_in_the_same_words(port: Gloveport, code: str, message: str) -> None:
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.line) == ("engine-lacks", 2)
    assert f"the engine `monty` has no {message}" in outcome.error.message
    assert "the engine `cpython` has it" in (outcome.error.hint or "")


async def test_what_monty_can_t_do_inside_is_a_lack_too(port: Gloveport) -> None:
    outcome = await port.run("x = 1\nraise ValueError(x)", language="python", engine="monty")
    assert outcome.error is not None
    assert outcome.error.code == "engine-lacks"
    assert "exceptions can only be called with zero or one string argument" in outcome.error.message


async def test_an_import_that_may_fail_may_fail(port: Gloveport) -> None:
    code = "try:\n    import uuid\nexcept ImportError:\n    uuid = None\nuuid"
    assert await value_of(port, code) is None


async def test_a_name_of_pythons_that_the_program_defines_is_its_own(port: Gloveport) -> None:
    assert await value_of(port, "def callable(x):\n    return 3\ncallable(1)") == 3


@pytest.mark.parametrize("code", ["import json\njson.JSONEncoder", "from dataclasses import asdict"])
async def test_a_missing_part_of_a_module_says_which_engine_has_all_of_it(port: Gloveport, code: str) -> None:
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is not None
    assert "the engine `cpython` has all of it" in (outcome.error.hint or "")


def test_the_lists_of_what_monty_has_are_true() -> None:
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    named = {name for name in dir(builtins) if not name.startswith("_")} - {"copyright", "credits", "license"}
    given = {"exit", "quit", "input"}
    with pydantic_monty.Monty() as pool, pool.checkout(limits={"max_suspensions": 10_000}) as session:
        imported = {name for name in public if _runs(session, f"import {name}")}
        known = {name for name in named if _runs(session, name)}
        members = {name for name in dir(asyncio) if _runs(session, f"import asyncio\nasyncio.{name}")}
    assert imported == MODULES - {"__future__", "__main__", "os.path"}
    assert named - known - given == MISSING_BUILTINS
    assert members == IN_ASYNCIO


def _runs(session: pydantic_monty.MontySession, code: str) -> bool:
    try:
        session.feed_run(code, external_lookup={})
    except pydantic_monty.MontyError:
        return False
    return True


async def test_names_arguments_and_imports_are_checked_before_the_run(port: Gloveport) -> None:
    for code, error in (
        ("await tools.get_wether(city='Oslo')", "unknown-tool"),
        ("await tools.get_weather(cty='Oslo')", "bad-arguments"),
        ("import requests", "import-refused"),
        ("def f(:\n    pass", "syntax-error"),
    ):
        outcome = await port.run(code, language="python", engine="monty")
        assert outcome.error is not None
        assert outcome.error.code == error
        assert outcome.calls == ()


# Limits.


@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        ("while True: pass", {"wall_seconds": 1}, "time-limit"),
        ("import asyncio\nawait asyncio.sleep(1000)", {"wall_seconds": 0.5}, "time-limit"),
        ("while True: pass", {"cpu_seconds": 0.3}, "cpu-limit"),
        ("x = []\nwhile True: x.append('a' * 10**6 + str(len(x)))", {"memory_mb": 64}, "memory-limit"),
        ("'x' * 10**11", {"memory_mb": 64}, "memory-limit"),
        ("[0] * 10**10", {"memory_mb": 64}, "memory-limit"),
        ("d, i = {}, 0\nwhile True:\n    d[i] = str(i)\n    i += 1", {"memory_mb": 64}, "memory-limit"),
        ("for i in range(20): await tools.add(i, 1)", {"max_calls": 10}, "call-limit"),
        ("'x' * 5000", {"max_result_bytes": 1000}, "result-too-large"),
        ("'x' * 90000", {"max_frame_bytes": 65536}, "result-too-large"),
        ("a = [1]\nfor _ in range(60): a = [a, a]\na", {}, "result-too-large"),
    ],
)
async def test_limits_hold(port: Gloveport, code: str, limits: dict[str, Any], error: str) -> None:
    outcome = await port.run(code, language="python", engine="monty", limits=limits)
    assert outcome.error is not None
    assert outcome.error.code == error


async def test_more_calls_than_montys_own_limit_are_made_when_the_run_may(port: Gloveport) -> None:
    code = "n = 0\nfor i in range(1500): n += await tools.add(i, 1)\nn"
    assert await value_of(port, code, limits={"max_calls": 2000}) == sum(range(1, 1501))


async def test_a_flood_of_output_is_cut_and_counted(port: Gloveport) -> None:
    outcome = await port.run(
        "for i in range(5000): print('x' * 1000)", language="python", engine="monty", limits={"max_log_bytes": 10_000}
    )
    assert outcome.error is None
    assert sum(len(line.text) for line in outcome.logs) <= 10_000
    assert "bytes of output were left out" in outcome.warnings[0]


@pytest.mark.parametrize(
    "code",
    [
        "t = tools\nfor i in range(100000): t = t.a\nt",
        "import os\nos.urandom(10**9)",
        "f'{2**20000}'\n{i * (2**61 - 1) + 2**70: 1 for i in range(20000)}",
        "await tools.echo(value={i * (2**61 - 1) + 2**70: 1 for i in range(20000)})",
    ],
)
async def test_what_would_cost_the_host_too_much_fails(port: Gloveport, code: str) -> None:
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.status == "failed"


@pytest.mark.parametrize(
    "code",
    [
        "_gloveport_cause()\n_gloveport_cause(1, [2], None, {})\n_gloveport_cause('a', 'b', 'c', 'd', 'e')\n3",
        "_gloveport_fields([1])\n_gloveport_fields('x\\x0099')\n_gloveport_keep(5)\n3",
        "_gloveport_cause = _gloveport_caught = _gloveport_failed = None\n3",
        "t = tools\nt.gloveport__names.append(1)\n3 if list(tools) else 0",
    ],
)
async def test_what_the_prelude_uses_harms_nobody_in_the_hands_of_a_program(port: Gloveport, code: str) -> None:
    assert await value_of(port, code) == 3


async def test_an_exception_that_is_its_own_cause_ends(port: Gloveport) -> None:
    code = "_gloveport_cause('ValueError', 'a', 'ValueError', 'a')\nraise ValueError('a')"
    outcome = await port.run(code, language="python", engine="monty")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "a")


@pytest.mark.parametrize(
    ("handler", "warned"),
    [
        ("except ToolError:", False),
        ("except (ToolError):", False),
        ("except Exception:", False),
        ("except:", False),
        ("except ToolError as e:", False),
        ("except (KeyError, ToolError):  # both", False),
        (None, True),
    ],
)
async def test_a_failed_call_that_some_handler_caught_was_seen(port: Gloveport, handler: str | None, warned: bool) -> None:
    caught = f"try:\n    await call\n{handler}\n    pass\n" if handler else ""
    outcome = await port.run(
        f"call = tools.fail()\nawait tools.add(1, 2)\n{caught}await tools.add(1, 2)", language="python", engine="monty"
    )
    assert outcome.value == 3
    assert [*outcome.warnings] == (["unhandled rejection: ToolError: no luck"] if warned else [])


async def test_return_exceptions_gives_failures_among_values(port: Gloveport) -> None:
    code = """
import asyncio
async def bad():
    raise KeyError('x')
r = await asyncio.gather(tools.add(1, 2), tools.fail(code='quota'), bad(), return_exceptions=True)
[r[0], r[1].code, type(r[2]).__name__, [isinstance(each, Exception) for each in r]]
"""
    assert await value_of(port, code) == [3, "quota", "KeyError", [False, True, True]]


async def test_a_name_of_the_tools_that_the_program_takes_for_its_own_is_its_own(port: Gloveport) -> None:
    assert await value_of(port, "tools = [1, 2]\nsum(tool for tool in tools) + tools[0] - (1 in tools)") == 3


async def test_nothing_of_the_machine_can_be_reached(port: Gloveport) -> None:
    for code in (
        "open('/etc/passwd').read()",
        "import os\nos.listdir('/')",
        "from pathlib import Path\nPath('/').exists()",
    ):
        outcome = await port.run(code, language="python", engine="monty")
        assert outcome.error is not None
        assert outcome.error.type == "PermissionError"


async def test_runs_know_nothing_of_each_other(port: Gloveport) -> None:
    assert await value_of(port, "state['x'] = planted = 1\nToolError.planted = 1\nplanted") == 1
    code = "try:\n    r = planted\nexcept NameError:\n    r = [state, hasattr(ToolError, 'planted')]\nr"
    assert await value_of(port, code) == [{}, False]


async def test_two_runs_differ_in_what_they_draw(port: Gloveport) -> None:
    code = "import os, random\n[random.random(), os.urandom(8)]"
    first, second = await value_of(port, code), await value_of(port, code)
    assert first[0] != second[0]
    assert first[1] != second[1]


# The choice of the engine.


async def test_an_engine_runs_only_its_languages(port: Gloveport) -> None:
    with pytest.raises(OptionError, match="monty does not run typescript"):
        await port.run("1", engine="monty")
    with pytest.raises(OptionError, match="deno does not run python"):
        await port.run("1", language="python", engine="deno")


GENERATOR = "def g():\n    yield 1\nlist(g())"


async def test_python_means_cpython_where_the_jail_holds_native_code() -> None:
    told = await play("run", {"code": GENERATOR, "minimum": "kernel"}, user="reachable", without=["namespaces"])
    assert (told["engine"], told["value"]) == ("cpython", [1])


async def test_python_means_monty_where_the_jail_does_not_hold_native_code() -> None:
    weak = {"user": "reachable", "without": ["namespaces", "signal scope"]}
    told = await play("run", {"code": "sum([1, 2])", "minimum": "kernel"}, **weak)
    assert (told["engine"], told["value"], told["error"]) == ("monty", 3, None)
    told = await play("run", {"code": GENERATOR, "minimum": "kernel"}, **weak)
    assert told["error"][0] == "engine-lacks"


async def test_the_engines_that_are_chosen_are_those_that_the_machine_can_hold() -> None:
    everything = {"deno": ["typescript", "javascript"], "quickjs": [], "cpython": ["python"], "monty": []}
    assert await play("engines", {}, user="self", without=[]) == everything
    weak = await play("engines", {}, user="reachable", without=["namespaces", "signal scope"])
    assert weak == everything | {"quickjs": None, "cpython": None, "monty": ["python"]}


async def test_an_engine_that_was_named_is_refused_and_never_replaced() -> None:
    weak = {"user": "reachable", "without": ["namespaces", "signal scope"]}
    told = await play("run", {"code": "1", "minimum": "kernel", "engine": "cpython"}, **weak)
    assert told["error"][0] == "sandbox-unavailable"
    assert "this engine requires `full`" in told["error"][1]


async def test_below_the_minimum_monty_is_refused_too() -> None:
    told = await play("run", {"code": "1", "minimum": "full"}, user="reachable", without=["namespaces"])
    assert told["error"][0] == "sandbox-unavailable"
