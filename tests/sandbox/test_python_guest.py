"""The guest side of the CPython engine, driven over its socket: forms of programs, tools, time, randomness, values, errors."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from gloveport.values import from_wire, to_wire
from tests.sandbox.pythonhost import START, Frames, Host, Still, Zygote, pack, setup_of

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(zygote: Zygote) -> Host:
    return Host(zygote)


# The forms of a program.


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("", None),
        ("# nothing", None),
        ("1 + 1", 2),
        ("x = 2\nx * 3", 6),
        ("x = 2", None),
        ("await tools.add(a=1, b=2)", 3),
        ("return 5", 5),
        ("if True:\n    return 1\nreturn 2", 1),
        ("for n in range(5):\n    if n == 3:\n        return n", 3),
        ("return await tools.add(a=1, b=2)", 3),
        ("x = 1\nif x > 5:\n    return 'big'\nx + 1", 2),
        ("try:\n    return 1\nfinally:\n    print('end')", 1),
        ("'just text'", "just text"),
        ("tools.add(a=1, b=2)", 3),
        ("async def f():\n    return 4\nf()", 4),
        ("import asyncio\nasync def main():\n    return await tools.add(a=1, b=2)\nasyncio.run(main())", 3),
        ("from __future__ import annotations\ndef f(x: Unknown): return x\nf(1)", 1),
        ("from __future__ import annotations\ndef f(x: Unknown): return x\nreturn f(1)", 1),
        ("from math import *\nreturn floor(2.5)", 2),
        ("from math import *\nfloor(2.5)", 2),
        ("[await tools.add(a=n, b=1) for n in range(3)]", [1, 2, 3]),
        ("async def count():\n    yield 1\nreturn [n async for n in count()]", [1]),
        (
            "try:\n    pass\nfinally:\n    n: int = 2\nmatch n:\n    case 2:\n        m: int\n        from math import *\nreturn floor(n)",
            2,
        ),
        pytest.param("+".join(["1"] * 790), 790, id="790 terms"),
        pytest.param("return " + "+".join(["1"] * 790), 790, id="return 790 terms"),
    ],
)
def test_a_program_gives_what_it_returns_or_what_its_last_line_says(host: Host, code: str, value: Any) -> None:
    assert host.run(code).value == value


def test_functions_and_classes_of_a_program_that_returns_see_each_other_as_in_a_module(host: Host) -> None:
    code = """
import math as m, os.path
limit: int = 3
later: str
count = 0
class Node:
    size: int = limit
    def double(self): return make(self.size * 2)
def make(size):
    global count
    count += 1
    return {"size": size, "floor": m.floor(1.5), "join": os.path.join("a", "b")}
if (seen := make(1)) and [last := n for n in range(3)]:
    pass
match {"a": [1, 2, 3], "b": 4}:
    case {"a": [first, *others], **rest}: pass
with open_it() if False else __import__("contextlib").nullcontext(7) as entered: pass
for index, (left, right) in enumerate([(1, 2)]): pass
def sees(): return [limit, last, first, others, rest, entered, index, left, right, count]
Node().double()
return sees()
"""
    assert host.run(code).value == [3, 2, 1, [2, 3], {"b": 4}, 7, 0, 1, 2, 2]


def test_classes_of_a_program_can_be_pickled_compared_and_made_dataclasses(host: Host) -> None:
    code = """
import pickle, dataclasses, enum, typing, inspect
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: "int" = 0
class Colour(enum.Enum):
    RED = "red"
copy = pickle.loads(pickle.dumps([Point(1), Colour.RED]))
hints = typing.get_type_hints(Point)
{end}[copy == [Point(1), Colour.RED], hints["y"].__name__, __name__, inspect.getsource(Colour).splitlines()[0], Point.__qualname__]
"""
    expected = [True, "int", "__main__", "class Colour(enum.Enum):", "Point"]
    assert host.run(code.replace("{end}", "")).value == expected
    assert host.run(code.replace("{end}", "return ")).value == expected


@pytest.mark.parametrize(
    ("head", "changes", "value"),
    [
        ("async def main():\n    return 1", {}, 1),
        ("def main():\n    return 1", {}, 1),
        ("async def main(tools):\n    return await tools.add(a=1, b=2)", {}, 3),
        ("async def main(t):\n    return await t.add(a=1, b=2)", {}, 3),
        ("async def main(input, tools):\n    return await tools.add(a=input, b=2)", {"input": 5}, 7),
        ("async def main(given, t):\n    return await t.add(a=given, b=2)", {"input": 5}, 7),
        ("async def main(given):\n    return given", {"input": 5}, 5),
        ("async def main(tools):\n    return await tools.add(a=input, b=2)", {"input": 5}, 7),
        ("async def main(*all):\n    return len(all)", {"input": 5}, 2),
        ("async def main(tools, extra=3):\n    return extra", {}, 3),
        ("X = 4\nasync def main():\n    return X", {}, 4),
    ],
)
def test_a_main_function_is_called_with_what_it_takes(host: Host, head: str, changes: dict[str, Any], value: Any) -> None:
    assert host.run(head, entry="function", **changes).value == value


@pytest.mark.parametrize(
    ("code", "line", "column", "says"),
    [
        ("def f(:\n    pass", 1, 7, "invalid syntax"),
        ("x = 1\n\n  y = 2", 3, 3, "unexpected indent"),
        ("x = 'ü' +", 1, 10, "invalid syntax"),
        ("\n\nprint('a'", 3, 6, "was never closed"),
        ("yield 1", 1, 1, "outside function"),
        ("yield 1\nreturn 2", 1, 1, "outside function"),
        ("break", 1, 1, "outside loop"),
        ("if True:\n    return 1\nbreak", 3, 1, "outside loop"),
    ],
)
def test_a_program_that_does_not_compile_is_told_where(host: Host, code: str, line: int, column: int, says: str) -> None:
    error = host.run(code).error
    assert (error["type"], error["load"], error["line"], error["column"]) == ("SyntaxError", True, line, column)
    assert says in error["message"]


@pytest.mark.parametrize("code", ["(" * 5000 + ")" * 5000, "x = '\0'", "-" * 100_000 + "1"])
def test_a_program_that_breaks_the_compiler_is_a_syntax_error_and_no_crash(host: Host, code: str) -> None:
    assert host.run(code).error["load"] is True


# Globals.


def test_the_names_of_the_contract_are_there(host: Host) -> None:
    code = """
print(codemode is tools, state, local)
emit({"shown": 1})
stepped = await step("one", lambda: tools.add(a=1, b=2))
[stepped, await step("two", lambda: 5), input, await local.add(a=2, b=2), "add" in tools, sorted(tools)[0], __getToolInterface("add"),
 __interfaces, issubclass(ToolError, Exception)]
"""
    run = host.run(code, input=4)
    assert run.value == [3, 5, 4, 4, True, "add", "interface ['add']", "interfaces []", True]
    assert run.of("emit") == [[{"shown": 1}]]
    assert run.printed == "True {} <tools.local>"


def test_a_source_does_not_shadow_what_python_has(host: Host) -> None:
    assert host.run("[len('ab'), repr(github)]", sources=["len", "github", "tools"]).value == [2, "<tools.github>"]


def test_the_environment_holds_what_the_run_was_given(host: Host) -> None:
    assert host.run("import os\n[dict(os.environ), os.getenv('HOME')]", env={"A": "1"}).value == [{"A": "1"}, None]


def test_without_input_the_name_is_a_function_that_says_so(host: Host) -> None:
    error = host.run("name = input('who? ')").error
    assert (error["type"], error["line"]) == ("EOFError", 1) and "not offered" in error["message"]


@pytest.mark.parametrize(
    "code", ["exit()", "quit(1)", "import sys\nsys.exit(0)", "import os\nos._exit(0)", "raise SystemExit"]
)
def test_leaving_the_process_is_an_error_of_the_program(host: Host, code: str) -> None:
    run = host.run(f"import asyncio\nawait asyncio.sleep(0)\n{code}")
    assert run.error["type"] == "SystemExit"
    assert run.error["message"] == "exit is not offered here: return from the program"
    assert run.notes["unhandled"] == []


# Output.


def test_output_comes_line_by_line_with_its_level_and_never_as_a_frame(host: Host) -> None:
    code = """
import sys, os, logging, warnings
print("a", 1, end="")
print(" b")
print("two\\nlines")
sys.stdout.write("bytes: ")
sys.stdout.buffer.write("ü\\n".encode())
print("careful", file=sys.stderr)
logging.warning("logged %d", 5)
warnings.warn("watch out")
os.write(1, b"stray")
print("no end", end="")
"""
    assert host.run(code).logs == [
        ("log", "a 1 b"),
        ("log", "two"),
        ("log", "lines"),
        ("log", "bytes: ü"),
        ("error", "careful"),
        ("warn", "WARNING:root:logged 5"),
        ("warn", 'program.py:10: UserWarning: watch out\n  warnings.warn("watch out")'),
        ("log", "no end"),
    ]


def test_output_beyond_the_budget_is_left_out_and_counted(host: Host) -> None:
    run = host.run("for n in range(100):\n    print('x' * 9)", max_log_bytes=50)
    assert len(run.logs) == 5 and run.notes["dropped"] == 95 * 9


def test_a_line_and_its_emits_are_sent_before_the_program_goes_on(zygote: Zygote) -> None:
    with zygote.guest() as guest:
        frames = Frames(guest)
        assert json.loads(frames.next()[0])[:2] == ["ready", 1]
        guest.channel.sendall(
            pack(json.dumps(["start", START, setup_of("print('before')\nemit(1)\nwhile True: pass")]).encode())
        )
        seen = frames.next()
        while len(seen) < 2:
            seen += frames.next()
        assert [json.loads(frame) for frame in seen] == [["log", "log", "before"], ["emit", 1]]


# Tools.


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("raw()", []),
        ("raw(a=1, b=None)", [{"a": 1, "b": None}]),
        ("raw({'a': 1})", [{"a": 1}]),
        ("raw(1, 'two', [3])", [1, "two", [3]]),
        ("raw(self=1, name=2, args=3)", [{"self": 1, "name": 2, "args": 3}]),
        ("raw(*[1], **{})", [1]),
        ("raw(1, b=2)", [{"a": 1, "b": 2}]),
        ("raw(1, c=2)", [{"a": 1, "c": 2}]),
    ],
)
def test_a_call_takes_keywords_one_dict_or_positionals(host: Host, call: str, args: list[Any]) -> None:
    assert [message[1:] for message in host.run(f"await tools.{call}").of("call")] == [["raw", args]]


def test_paths_are_built_by_attributes_and_items(host: Host) -> None:
    code = "await tools.a.b['c d'].e(1)\n"
    assert host.run(f"try:\n    {code}except ToolError as error:\n    print(error.code)").of("call") == [
        [1, "a.b.c d.e", [1]]
    ]


def test_the_parameters_of_a_tool_are_asked_for_once(host: Host) -> None:
    run = host.run("for n in range(3):\n    await tools.raw(n, b=n)")
    assert len(run.of("call")) == 3
    assert [message[1:] for message in run.of("call_sync")] == [["parameters", ["raw"]]]


@pytest.mark.parametrize("call", ["raw(1, a=2)", "raw(1, 2, 3, b=2)"])
def test_keywords_that_do_not_fit_the_positionals_are_refused(host: Host, call: str) -> None:
    assert "bad arguments for `tools.raw`" in host.run(f"await tools.{call}").error["message"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("tools()", "`tools` is not a function"),
        ("tools.x = 1", "<tools> can't be changed"),
        ("tools.x[0]", "takes the name of a tool, not 0"),
        ("tools.add(a=1)['x']", "can't be subscripted: await it first"),
        ("for x in tools.add(a=1): pass", "can't be iterated over: await it first"),
        ("tools.add(a=1) > 3", "can't be compared: await it first"),
        ("tools.add(a=1) == 3", "can't be compared: await it first"),
        ("if tools.add(a=1): pass", "can't be used as a condition: await it first"),
        ("tools.add(a=1) + 1", "can't be used with an operator: await it first"),
        ("len(tools.add(a=1))", "can't be iterated over: await it first"),
        ("tools.add(a=1).rows", "has no attribute 'rows': await it first, as in `(await tools.add(…)).rows`"),
        ("(await tools.add(a=1, b=2)).rows", "'int' object has no attribute 'rows'"),
        ("await tools.raw({'f': [print]})", "tools.raw: argument.f[0] is a function: only data can cross"),
        ("await tools.raw(1, print)", "tools.raw: argument 2 is a function"),
        ("await tools.raw(x=tools.add(a=1))", "argument.x is a call or task that was not awaited: await it"),
    ],
)
def test_a_misused_tool_says_what_to_do(host: Host, code: str, says: str) -> None:
    assert says in host.run(code).error["message"]


def test_a_failed_call_raises_a_tool_error_with_its_fields(host: Host) -> None:
    code = """
try:
    await tools.fail()
except ToolError as error:
    [error.code, error.tool, error.message, str(error), error.status, error.data, error.retryable, error.hint]
"""
    code = code.replace("    [error.code", "    out = [error.code") + "out"
    assert host.run(code).value == ["tool-failed", "fail", "no luck", "no luck", 418, {"left": 3}, False, "try later"]


WAYS = {
    "gather": "await asyncio.gather(*calls)",
    "wait": "[task.result() for task in sorted((await asyncio.wait(calls))[0], key=calls.index)]",
    "tasks": "[await task for task in [asyncio.create_task(call) for call in calls]]",
    "ensure": "[await asyncio.ensure_future(call) for call in calls]",
    "shield": "[await asyncio.shield(call) for call in calls]",
    "wait_for": "[await asyncio.wait_for(call, 5) for call in calls]",
    "as_completed": "[await call for call in asyncio.as_completed(calls)]",
    "group": "[task.result() for task in await grouped(calls)]",
    "twice": "[await call for call in calls if await call]",
    "result": "(await asyncio.gather(*calls), [call.result() for call in calls])[1]",
    "nested run": "[asyncio.run(call) for call in calls]",
    "loop": "[asyncio.get_event_loop().run_until_complete(call) for call in calls]",
    "timeout": "await limited(calls)",
    "set": "(lambda found: [call.result() for call in found])((await asyncio.wait(set(calls)))[0])",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_works_wherever_asyncio_takes_an_awaitable(host: Host, way: str) -> None:
    code = f"""
import asyncio
async def grouped(calls):
    async with asyncio.TaskGroup() as group:
        return [group.create_task(call) for call in calls]
async def limited(calls):
    async with asyncio.timeout(5):
        return [await call for call in calls]
calls = [tools.add(a=n, b=1) for n in range(4)]
{WAYS[way]}
"""
    run = host.run(code)
    assert run.value == [1, 2, 3, 4]
    assert [call[0] for call in run.of("call")] == [1, 2, 3, 4]


def test_calls_are_sent_when_they_are_made_and_pending_ones_are_named_at_the_end(host: Host) -> None:
    run = host.run("tools.never(n=1)\ntools.never(n=2)\nasync def later():\n    await tools.never(n=3)\nlater()\n7\n")
    assert run.value == 7 and run.notes["pending"] == [1, 2]
    assert [(level, "coroutine 'later' was never awaited" in text) for level, text in run.logs] == [("warn", True)]


def test_errors_that_nobody_looked_at_are_named_in_the_notes(host: Host) -> None:
    code = """
import asyncio
async def bad(): raise KeyError("lost")
async def seen(): raise ValueError("seen")
kept = asyncio.create_task(bad())
asyncio.create_task(bad())
looked = asyncio.create_task(seen())
call = tools.fail()
asyncio.get_running_loop().call_soon(lambda: 1 / 0)
await asyncio.sleep(1)
str(looked.exception())
"""
    run = host.run(code)
    assert run.value == "seen"
    assert sorted((item["type"], item["message"]) for item in run.notes["unhandled"]) == [
        ("KeyError", "'lost'"),
        ("KeyError", "'lost'"),
        ("ToolError", "no luck"),
        ("ZeroDivisionError", "division by zero"),
    ]


def test_background_tasks_are_dropped_silently_at_the_end(host: Host) -> None:
    code = """
import asyncio
async def background():
    try:
        await asyncio.sleep(1000)
    finally:
        print("cleaned up")
task = asyncio.create_task(background())
await asyncio.sleep(0)
"over"
"""
    run = host.run(code)
    assert (run.value, run.logs, run.notes["unhandled"]) == ("over", [], [])


# The event loop.


def test_asyncio_run_works_at_the_top_in_functions_and_in_itself(host: Host) -> None:
    code = """
import asyncio
async def one(n):
    await asyncio.sleep(0.1)
    return await tools.add(a=n, b=1)
def blocking(n):
    return asyncio.run(one(n))
async def outer():
    inner = blocking(1)
    return [inner, *await asyncio.gather(one(2), one(3)), asyncio.current_task().get_name()]
with asyncio.Runner() as runner:
    first = runner.run(one(10))
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
second = loop.run_until_complete(one(20))
loop.close()
if __name__ == "__main__":
    third = asyncio.run(outer())
[first, second, third[:3]]
"""
    assert host.run(code).value == [11, 21, [2, 3, 4]]


def test_asyncio_run_cancels_what_it_leaves_behind(host: Host) -> None:
    code = """
import asyncio
async def background(n):
    try:
        await asyncio.sleep(1000)
    finally:
        print("cancelled", n)
async def main():
    asyncio.create_task(background(1))
    asyncio.create_task(background(2))
    await asyncio.sleep(0)
    return "main"
asyncio.run(main())
"""
    run = host.run(code)
    assert (run.value, run.printed) == ("main", "cancelled 1\ncancelled 2")


def test_timers_fire_in_the_order_of_their_times_and_of_asking(host: Host) -> None:
    code = """
import asyncio, time
seen = []
async def later(name, delay):
    await asyncio.sleep(delay)
    seen.append(name)
start = time.monotonic()
await asyncio.gather(*[later(name, delay) for name, delay in [("c", 3), ("a", 1), ("b1", 2), ("b2", 2), ("b3", 2), ("z", 0)]])
[seen, round(time.monotonic() - start)]
"""
    run = host.run(code)
    assert run.value == [["z", "a", "b1", "b2", "b3", "c"], 3]
    assert [at[0] - START for at in run.of("timer")] == [1_000_001, 2_000_001, 3_000_001]


def test_a_timer_that_is_not_needed_any_more_is_taken_back(host: Host) -> None:
    run = host.run("import asyncio\nawait asyncio.wait_for(tools.add(a=1, b=2), 50)\nawait tools.add(a=3, b=4)")
    assert run.value == 7
    assert [at is None for (at,) in run.of("timer")] == [False, True]


def test_a_timeout_ends_the_wait_for_a_call(host: Host) -> None:
    code = """
import asyncio
try:
    await asyncio.wait_for(tools.never(), timeout=3)
except asyncio.TimeoutError as error:
    out = type(error).__name__
try:
    async with asyncio.timeout(2):
        await tools.never()
except TimeoutError:
    out += " again"
out
"""
    run = host.run(code)
    assert (run.value, run.notes["pending"]) == ("TimeoutError again", [1, 2])


def test_time_sleep_passes_time_and_keeps_other_events_in_order(host: Host) -> None:
    code = """
import time, asyncio
calls = [tools.add(a=n, b=0) for n in range(3)]
seen = []
for n, call in enumerate(calls):
    call.add_done_callback(lambda call, n=n: seen.append(n))
before = time.time()
time.sleep(30)
slept = time.time() - before
during = list(seen)
await asyncio.gather(*calls)
[round(slept), during, seen]
"""
    for seed in range(5):
        run = host.run(code, order=random.Random(seed))
        assert run.value[:2] == [30, []] and sorted(run.value[2]) == [0, 1, 2]
        assert host.replay(run) == run.frames


def test_a_program_that_polls_is_let_its_events(host: Host) -> None:
    code = """
import asyncio
task = asyncio.create_task(tools.add(a=1, b=2))
turns = 0
while not task.done():
    turns += 1
    await asyncio.sleep(0)
[task.result(), turns > 100]
"""
    run = host.run(code)
    assert run.value == [3, True]
    assert host.replay(run) == run.frames


def test_a_program_that_can_never_end_is_told_so_and_where(host: Host) -> None:
    code = "import asyncio\nasync def stuck(lock):\n    await lock.wait()\nx = 1\nawait stuck(asyncio.Event())"
    error = host.run(code).error
    assert error["code"] == "never-settles" and error["message"] == "the program waits for something that can never happen"
    assert (error["line"], error["column"]) == (3, 5)
    error = host.run("import asyncio\nasyncio.run(asyncio.Event().wait())").error
    assert error["code"] == "never-settles"


def test_what_would_run_in_a_thread_runs_inline(host: Host) -> None:
    code = """
import asyncio, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed
found = []
thread = threading.Thread(target=lambda: found.append("thread"))
thread.start(); thread.join()
with ThreadPoolExecutor(max_workers=4) as pool:
    found += pool.map(str.upper, ["a", "b"])
    futures = [pool.submit(divmod, 7, n) for n in (2, 0)]
    found += [type(f.exception()).__name__ for f in as_completed(futures) if f.exception()]
found.append(await asyncio.to_thread(lambda: time.sleep(5) or "slept"))
found.append(await asyncio.get_running_loop().run_in_executor(None, len, "abc"))
[found, thread.is_alive()]
"""
    assert host.run(code).value == [["thread", "A", "B", "ZeroDivisionError", "slept", 3], False]


def test_waiting_for_another_thread_is_an_error_and_no_hang(host: Host) -> None:
    assert "threads run one after the other" in host.run("import queue\nqueue.Queue().get()").error["message"]
    assert host.run("import queue\ntry:\n    queue.Queue().get(timeout=3)\nexcept queue.Empty:\n    x = 1\nx").value == 1


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.open_connection('127.0.0.1', 80)",
        "await asyncio.create_subprocess_exec('true')",
        "asyncio.get_running_loop().add_reader(0, print)",
        "asyncio.get_running_loop().add_signal_handler(2, print)",
    ],
)
def test_what_the_loop_does_not_offer_says_so(host: Host, code: str) -> None:
    error = host.run(f"import asyncio\n{code}").error
    assert error["type"] == "NotImplementedError" and "is not offered here" in error["message"]


# Time and randomness.


def test_every_way_to_read_the_time_goes_by_the_events(host: Host) -> None:
    code = """
import time, datetime, calendar, logging, os, uuid, email.utils, sched
from datetime import datetime as dt, date, timezone
readings = [time.time(), time.time_ns() / 1e9, time.clock_gettime(time.CLOCK_REALTIME), dt.now().timestamp(), dt.now(timezone.utc).timestamp(),
            dt.utcnow().replace(tzinfo=timezone.utc).timestamp(), dt.today().timestamp(), calendar.timegm(time.gmtime()),
            time.mktime(time.localtime()), email.utils.mktime_tz(email.utils.parsedate_tz(email.utils.formatdate())),
            logging.makeLogRecord({}).created, (uuid.uuid1().time - 0x01b21dd213814000) / 1e7]
texts = [date.today().isoformat(), time.strftime("%Y-%m-%d"), time.ctime(), time.asctime(), str(dt.now(timezone.utc)), time.tzname[0]]
import timeit
ran = sched.scheduler()
ran.enter(0.0001, 1, lambda: None)
ran.run()
elapsed = [timeit.timeit("1", number=1), time.monotonic(), time.perf_counter(), time.process_time(), time.thread_time(), time.monotonic_ns() / 1e9, os.times().elapsed]
kinds = [type(dt.now()) is dt, repr(dt(2024, 1, 2)), isinstance(dt.now(), date), (dt.now() - dt.now()).total_seconds() < 0]
class Mine(dt): pass
[readings, texts, elapsed, kinds, type(Mine.now()).__name__]
"""
    run = host.run(code)
    readings, texts, elapsed, kinds, mine = run.value
    assert all(0 <= value - START / 1e6 < 0.001 or value == START // 10**6 for value in readings), readings
    assert texts[:4] == ["2023-11-14", "2023-11-14", "Tue Nov 14 22:13:20 2023", "Tue Nov 14 22:13:20 2023"]
    assert texts[4].startswith("2023-11-14 22:13:20.0000") and texts[5] == "UTC"
    assert all(0 <= value < 0.002 for value in elapsed), elapsed
    assert kinds == [True, "datetime.datetime(2024, 1, 2, 0, 0)", True, True] and mine == "Mine"
    assert host.replay(run) == run.frames


def test_sqlite_asks_the_same_clock_and_its_dates_work_as_ever(host: Host) -> None:
    code = """
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t (x text, at text default current_timestamp)")
db.execute("create index i on t (date(x))")
db.execute("insert into t (x) values ('2024-01-31')")
db.execute(\"\"\"select date(x, '+1 day'), at, strftime('%Y', x), datetime('now'), strftime('%f', 'NOW'), date(null), time(),
    typeof(random()), length(randomblob(5)), typeof(julianday('now')), current_date, unixepoch('now') from t\"\"\").fetchone()
"""
    now = "2023-11-14 22:13:20"
    said = ["2024-02-01", now, "2024", now, "20.000", None, "22:13:20", "integer", 5, "real", "2023-11-14", START // 10**6]
    assert host.run(code).value == said


def test_each_reading_takes_a_microsecond(host: Host) -> None:
    assert from_wire(host.run("import time\n[time.time_ns() for _ in range(3)]").value) == [
        (START + n) * 1000 for n in range(3)
    ]
    assert host.run("import time\nend = time.time() + 0.01\nwhile time.time() < end: pass\n1").value == 1


RANDOM = """
import random, os, secrets, uuid, tempfile, string
random.seed()
[random.random(), random.Random().random(), random.SystemRandom().random(), os.urandom(8).hex(), secrets.token_hex(8), str(uuid.uuid4()),
 str(uuid.uuid1()), secrets.choice(string.ascii_letters), next(tempfile._get_candidate_names()), random.sample(range(100), 5), random.randbytes(4).hex()]
"""


def test_all_randomness_comes_from_the_seed(host: Host) -> None:
    first, second = host.run(RANDOM), host.run(RANDOM)
    assert first.value == second.value and len(set(map(str, first.value))) == len(first.value)
    other = host.run(RANDOM, seed="A" * 42 + "E=").value
    assert sum(mine == theirs for mine, theirs in zip(first.value, other, strict=True)) <= 1  # of one letter, by chance


# Values.


VALUES = {
    "None": None,
    "[True, 1, 1.5, 'ü', []]": [True, 1, 1.5, "ü", []],
    "2**53 - 1": 2**53 - 1,
    "2**70": {"$": "bigint", "v": str(2**70)},
    "-0.0": -0.0,
    "[float('nan'), float('inf'), float('-inf')]": [{"$": "number", "v": v} for v in ("NaN", "Infinity", "-Infinity")],
    "b'\\x00\\xff'": {"$": "bytes", "v": "AP8="},
    "bytearray(b'a')": {"$": "bytes", "v": "YQ=="},
    "{1: 'a', 2.5: 'b', 'c': 'd'}": {"$": "map", "v": [[1, "a"], [2.5, "b"], ["c", "d"]]},
    "{'b', 'a'}": {"$": "set", "v": ["a", "b"]},
    "{'$': 1, '$x': 2}": {"$$": 1, "$$x": 2},
    "'\\ud800x'": "\ufffdx",
    "__import__('datetime').datetime(1970, 1, 1, 0, 0, 1)": {"$": "date", "v": 1000},
    "__import__('datetime').date(2024, 1, 2)": "2024-01-02",
    "__import__('datetime').timedelta(minutes=1)": 60.0,
    "__import__('decimal').Decimal('1.50')": "1.50",
    "__import__('uuid').UUID(int=0)": "00000000-0000-0000-0000-000000000000",
    "__import__('enum').Enum('E', 'A').A": 1,
    "__import__('collections').namedtuple('N', 'a b')(1, 2)": [1, 2],
    "__import__('dataclasses').make_dataclass('D', ['a', 'b'])(1, [2])": {"a": 1, "b": [2]},
    "__import__('collections').Counter('aab')": {"a": 2, "b": 1},
    "__import__('collections').deque([1])": [1],
    "range(3)": [0, 1, 2],
    "{'a': 1}.keys()": ["a"],
    "{'a': 1}.items()": [["a", 1]],
    "ValueError('bad')": {"$": "error", "v": {"name": "ValueError", "message": "bad"}},
    "__import__('http').HTTPStatus.OK": 200,
    "__import__('pathlib').PurePosixPath('/a')": "/a",
}


@pytest.mark.parametrize("expression", VALUES)
def test_what_a_program_returns_crosses_in_the_form_of_the_table(host: Host, expression: str) -> None:
    value = host.run(expression).value
    assert (value, str(value)) == (VALUES[expression], str(VALUES[expression]))  # as texts, too: 0.0 equals -0.0
    from_wire(VALUES[expression])


def test_what_crosses_to_the_program_and_back_stays_what_it_was(host: Host) -> None:
    sent = {
        "none": None,
        "wide": 2**80,
        "nan": float("inf"),
        "bytes": b"\0\1",
        "map": {1: [True], "x": {"$y": 1}},
        "set": {"a", "b"},
        "date": from_wire({"$": "date", "v": 1500}),
        "error": from_wire(
            {
                "$": "error",
                "v": {
                    "name": "E",
                    "message": "m",
                    "cause": {"$": "error", "v": {"name": "C", "message": "n"}},
                    "data": {"k": 1},
                },
            }
        ),
        "deep": [[[[{}]]]],
    }
    run = host.run("await tools.raw(input)", input=to_wire(sent))
    assert from_wire(run.of("call")[0][2]) == [sent] and from_wire(run.value) == [sent]


def test_tags_arrive_as_what_they_stand_for(host: Host) -> None:
    code = """
when, error, mapped, gone = (await tools.raw(input))[0]
[str(when), type(error).__name__, error.name, str(error), error.k, str(error.__cause__), mapped[1], gone, isinstance(error, Exception)]
"""
    cause = {"$": "error", "v": {"name": "C", "message": "why"}}
    error = {"$": "error", "v": {"name": "TypeError", "message": "bad", "cause": cause, "data": {"k": 5}}}
    given = [{"$": "date", "v": 0}, error, {"$": "map", "v": [[1, "one"]]}, {"$": "undefined"}]
    expected = ["1970-01-01 00:00:00+00:00", "RemoteError", "TypeError", "bad", 5, "why", "one", None, True]
    assert host.run(code, input=given).value == expected


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "{'rows': [1, 2, 3, {'on_click': lambda: 1}]}",
            "result.rows[3].on_click is a function: only data can cross; call it, or return what it gives",
        ),
        ("async def f(): pass\n[f()]", "result[0] is a coroutine: await it"),
        ("{'x y': (n for n in [])}", "result['x y'] is a generator: use list(…) to make it a list"),
        ("[iter([])]", "result[0] is an iterator: use list(…) to make it a list"),
        ("{'c': int}", "result.c is a class: only data can cross"),
        ("[tools.add]", "result[0] is a function: only data can cross; call it, or return what it gives"),
        (
            "class C: pass\n{'c': C()}",
            "result.c is an object of class C: only data can cross; make it a dict or a dataclass",
        ),
        (
            "import re\nre.match('a', 'a')",
            "result is an object of class Match: only data can cross; make it a dict or a dataclass",
        ),
        ("10 ** 5000", "result is an integer of more than 4,000 digits"),
        ("import math\n[math]", "result[0] is a module: only data can cross"),
        ("{1: {2: print}}", "result[1][2] is a function: only data can cross; call it, or return what it gives"),
        ("[{(1, 2): 3}]", "result[0] has a key of class tuple: only text, numbers, dates and bytes can be keys"),
        ("[3j]", "result[0] is an object of class complex: only data can cross; make it a dict or a dataclass"),
    ],
)
def test_what_can_not_cross_names_its_path(host: Host, code: str, message: str) -> None:
    error = host.run(code).error
    assert (error["code"], error["message"]) == ("bad-value", message)


def test_cycles_and_depth_are_refused(host: Host) -> None:
    for code in ("x = []\nx.append(x)\nx", "x = {}\nx['a'] = x\nx", "x = []\nfor _ in range(113): x = [x]\nx"):
        assert "is nested too deeply, or contains itself" in host.run(code).error["message"]
    assert host.run("x = []\nfor _ in range(111): x = [x]\nx").value


def test_an_error_that_causes_itself_crosses_with_an_end(host: Host) -> None:
    assert str(host.run("e = ValueError()\ne.__cause__ = e\n[e]").value).count("ValueError") == 17


def test_messages_that_are_too_large_are_refused(host: Host) -> None:
    run = host.run(
        "try:\n    await tools.raw('x' * 2_000_000)\nexcept ToolError as error:\n    print(error.code, error)\n'x' * 2_000_000",
        max_frame_bytes=1_000_000,
    )
    assert run.printed == "frame-too-large tools.raw: 2,000,021 bytes are over the limit of 1,000,000 for one message"
    assert run.error["code"] == "result-too-large"


def test_large_messages_go_both_ways(host: Host) -> None:
    assert host.run("x = await tools.raw('ü' * 3_000_000)\n[len(x[0]), x[0][-1]]").value == [3_000_000, "ü"]


# Errors.


@pytest.mark.parametrize(
    ("code", "kind", "message", "place"),
    [
        ("x = 1\nraise ValueError('bad', 2)", "ValueError", "('bad', 2)", "2:1"),
        ("def f():\n    return 1 / 0\n\ny = f()", "ZeroDivisionError", "division by zero", "2:12"),
        ("'ü' * 3, {}['ö']", "KeyError", "'ö'", "1:10"),
        (
            "import json\njson.loads('{')",
            "JSONDecodeError",
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            "2:1",
        ),
        ("undefined_name", "NameError", "name 'undefined_name' is not defined", "1:1"),
        ("async def f():\n    x = await tools.fail()\nawait f()", "ToolError", "no luck", "2:9"),
        ("import asyncio\nasync def f():\n    await tools.fail()\nasyncio.run(f())", "ToolError", "no luck", "3:5"),
        ("def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded", "1:10"),
        ("assert 1 == 2, 'no'", "AssertionError", "no", "1:8"),
        ("return 1 + None", "TypeError", "unsupported operand type(s) for +: 'int' and 'NoneType'", "1:8"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "", "1:1"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError", "", "2:1"),
        ("next(iter([]))", "RuntimeError", "coroutine raised StopIteration", "1:1"),
    ],
)
def test_an_error_is_told_with_its_place_in_the_program(host: Host, code: str, kind: str, message: str, place: str) -> None:
    error = host.run(code).error
    assert (error["type"], error["message"], f"{error['line']}:{error['column']}") == (kind, message, place)


def test_a_failed_call_that_is_not_caught_carries_what_the_tool_said(host: Host) -> None:
    error = host.run("await tools.fail()").error
    assert {"code": "tool-failed", "tool": "fail", "hint": "try later", "data": {"left": 3}}.items() <= error.items()


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("order = {'id': 1, 'total': 2}\norder['price']", "the keys there are 'id', 'total'"),
        ("page = {'rows': [{'id': 1}]}\npage['rows'][0]['price']", "the keys there are 'id'"),
        ("[o['price'] for o in [{'id': 1}]]", "the keys there are 'id'"),
        ("def price(order):\n    return order['price']\nprice({})", "the dict there is empty"),
        ("d = {f'k{n}': n for n in range(14)}\nd['x']", "the keys there are " + ", ".join(f"'k{n}'" for n in range(12)) + " and 2 more"),
        ("class D(dict):\n    def __getitem__(self, key): raise KeyError(key)\nD(id=1)['x']", None),
        ("raise KeyError('x')", None),
    ],
)  # fmt: skip
def test_a_missing_key_shows_those_that_are_there(host: Host, code: str, hint: str | None) -> None:
    assert host.run(code).error.get("hint") == hint


def test_causes_are_told_as_a_chain(host: Host) -> None:
    code = "try:\n    try:\n        {}['a']\n    except KeyError as error:\n        raise ValueError('b') from error\nexcept ValueError:\n    raise TypeError('c')"
    error = host.run(code).error
    assert [error["type"], error["cause"]["type"], error["cause"]["cause"]["type"]] == [
        "TypeError",
        "ValueError",
        "KeyError",
    ]
    assert error["cause"]["cause"]["line"] == 3
    assert "cause" not in host.run("try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('b') from None").error


def test_a_group_of_errors_names_its_members(host: Host) -> None:
    code = """
import asyncio
async def bad(n):
    raise ValueError(f"number {n}")
async with asyncio.TaskGroup() as group:
    for n in range(2):
        group.create_task(bad(n))
"""
    error = host.run(code).error
    assert error["type"] == "ExceptionGroup" and error["cause"]["line"] == 4
    assert (
        error["message"] == "unhandled errors in a TaskGroup (2 sub-exceptions): ValueError: number 0; ValueError: number 1"
    )


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        "class E(Exception):\n    __cause__ = 5\nraise E",
        "class E(Exception):\n    @property\n    def __traceback__(self): return 5\nraise E",
    ],
)
def test_an_exotic_error_is_told_all_the_same(host: Host, code: str) -> None:
    assert host.run(code).error["type"] == "E"


def test_a_long_message_is_cut(host: Host) -> None:
    assert len(host.run("raise ValueError('x' * 1_000_000)").error["message"]) == 64 * 1024


def test_running_out_of_memory_is_a_limit(host: Host) -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))\nx = []\nwhile True: x.append(bytearray(100_000))"
    error = host.run(code).error
    assert (error["type"], error["code"], error["line"]) == ("MemoryError", "memory-limit", 4)


def test_tracebacks_show_the_program_and_nothing_of_the_host(host: Host) -> None:
    code = """
import traceback, logging, json, sys
def parse(text):
    return json.loads(text)
try:
    parse("{")
except ValueError:
    traceback.print_exc()
    print(traceback.format_exc())
    logging.exception("failed")
    print([frame.lineno for frame in traceback.extract_stack()])
try:
    await tools.fail()
except ToolError:
    traceback.print_exc()
class Loud:
    def __del__(self): raise ValueError("in del")
Loud() and None
"""
    run = host.run(code)
    shown = "\n".join(text for _, text in run.logs)
    assert shown.count('File "program.py", line 4, in parse') == 3
    assert "    return json.loads(text)" in shown and "ToolError: no luck" in shown and "[11]" in shown
    assert "/" not in shown.replace("Exception ignored", "") and "gloveport" not in shown
    assert "Exception ignored: ValueError: in del" in shown


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_compiler_counts_them(host: Host, end: str) -> None:
    code = ["import traceback", "a = '\u2028\x0b\x1c\x85'", "\x0c", "try:", "    1 / 0 # here", "except ZeroDivisionError:"]
    run = host.run(end.join([*code, "    traceback.print_exc()", "raise ValueError"]))
    assert "line 5, in <module>\n    1 / 0 # here" in "\n".join(text for _, text in run.logs)
    assert run.error["line"] == 8


# Replay.


STORM = """
import asyncio, random, time, datetime, uuid, traceback, logging, os, threading, secrets
logging.basicConfig(format="%(asctime)s.%(msecs)03d %(process)d %(relativeCreated)d %(threadName)s %(taskName)s %(message)s" if hasattr(logging.LogRecord, "taskName")
                    else "%(asctime)s %(process)d %(relativeCreated)d %(threadName)s %(message)s")
seen, tags = [], set()

async def worker(n):
    for turn in range(random.randint(1, 4)):
        try:
            await asyncio.sleep(random.random() / 100)
            value = await asyncio.wait_for(tools.echo(value=[n, turn, uuid.uuid4().hex]), timeout=random.random())
            seen.append([n, value[1], str(datetime.datetime.now()), time.monotonic()])
            tags.update({f"tag {n} {turn}", value[2]})
            if random.random() < 0.3:
                await tools.fail(n=n)
            if random.random() < 0.2:
                time.sleep(random.random() / 50)
        except ToolError as error:
            logging.error("worker %d failed: %s", n, error, exc_info=random.random() < 0.5)
        except asyncio.TimeoutError:
            print("late", n, turn, time.time())
    return n

async def race(count):
    calls = [tools.echo(value=n) for n in range(count)]
    done, pending = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    for call in pending:
        call.cancel()
    return [call.result() for call in done] + [len(pending)]

async def completed(count):
    return [await item for item in asyncio.as_completed([worker(100 + n) for n in range(count)])]

tools.echo(value="not awaited")
tools.fail(n="not awaited")
background = asyncio.create_task(worker(99), name="background")
results = await asyncio.gather(*[worker(n) for n in range(6)], race(5), completed(4), return_exceptions=True)
async with asyncio.TaskGroup() as group:
    tasks = {group.create_task(tools.echo(value=n)) for n in range(5)}
order = [task.result() for task in tasks]
objects = {asyncio.create_task(asyncio.sleep(0, n)) for n in range(9)}
order += [await item for item in objects]
emit({"tags": tags, "frozen": frozenset(range(5))})
print(list(tags), {"b", "a", "c"}, hash("x"), os.getpid(), threading.current_thread().name)
{"results": results, "seen": seen, "order": order, "random": random.random(), "token": secrets.token_hex(4), "when": datetime.datetime.now()}
"""


@pytest.mark.parametrize("seed", range(12))
def test_a_run_replays_to_the_same_bytes_whatever_the_order_of_its_events(host: Host, seed: int) -> None:
    order = random.Random(seed)
    run = host.run(STORM, order=order)
    assert run.value["seen"], run.messages
    assert host.replay(run) == run.frames


def test_a_replay_goes_the_same_way_in_a_guest_of_another_zygote(host: Host) -> None:
    run = host.run(STORM, order=random.Random(99))
    other = Zygote()
    try:
        assert Host(other).replay(run) == run.frames
    finally:
        other.close()


ADDRESSES = """
import asyncio, gc
class Plain: pass
class Cycle:
    def __init__(self, n): self.me, self.n = self, n
    def __del__(self): gone.append(self.n)
gone = []
async def churn(n):
    for turn in range(200):
        Cycle((n, turn))
        if turn % 20 == 0:
            await tools.echo(value=[n, turn, "x" * turn])
dir(tools)
await asyncio.gather(*[churn(n) for n in range(5)], asyncio.sleep(0.1))
things, blocks = [Plain() for _ in range(50)], [bytearray(n * 100) for n in range(50)]
[[repr(thing) for thing in things], [things.index(thing) for thing in set(things)], [id(block) for block in blocks], gone, gc.get_count()]
"""


def test_addresses_and_finalizers_replay_however_the_events_are_cut_where_addresses_are_not_randomised() -> None:
    guests = Still()
    try:
        host = Host(guests)
        host.run("1")  # the first may have had to compile the guest
        for seed in range(3):
            run = host.run(ADDRESSES, order=random.Random(seed))
            assert len(run.value[3]) > 500
            assert host.replay(run) == run.frames
    finally:
        guests.close()


def test_errors_replay_too(host: Host) -> None:
    code = "import asyncio, traceback\nasync def f(n):\n    try:\n        await tools.fail(n=n)\n    except ToolError as error:\n        traceback.print_exc()\n        raise ValueError(str(n)) from error\nawait asyncio.gather(*[f(n) for n in range(5)])"
    for seed in range(5):
        run = host.run(code, order=random.Random(seed))
        assert run.error["type"] == "ValueError" and run.error["cause"]["type"] == "ToolError"
        assert host.replay(run) == run.frames


def test_a_guest_ends_when_its_host_does(zygote: Zygote) -> None:
    guest = zygote.guest()
    Frames(guest).next()
    guest.channel.close()
    assert guest.ended()
