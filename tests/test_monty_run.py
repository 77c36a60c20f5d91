"""Python programs in Monty: the same contract as in CPython, as far as its language goes; the rest is told, not guessed."""

import subprocess
import sys
from typing import Any

import pydantic_monty
import pytest

from gloveport import Gloveport, OptionError
from gloveport.sandbox.engines.monty.subset import IN_ASYNCIO, MISSING_BUILTINS, MODULES
from tests.sandbox.jail.stage import play

pytestmark = pytest.mark.integration


async def value_of(port: Gloveport, code: str, **options: Any) -> Any:
    outcome = await port.run(code, language="python", engine="monty", **options)
    assert outcome.error is None, outcome.error
    return outcome.value


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
    # Of a fresh interpreter: IPython, which another test loads, adds builtins of its own to this one.
    ask = "import asyncio, builtins; print(*dir(builtins)); print(*dir(asyncio))"
    fresh = subprocess.run([sys.executable, "-Ic", ask], capture_output=True, text=True, check=True).stdout
    in_builtins, in_asyncio = (line.split() for line in fresh.splitlines())
    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    named = {name for name in in_builtins if not name.startswith("_")} - {"copyright", "credits", "license"}
    given = {"exit", "quit", "input"}
    with pydantic_monty.Monty() as pool, pool.checkout(limits={"max_suspensions": 10_000}) as session:
        imported = {name for name in public if _runs(session, f"import {name}")}
        known = {name for name in named if _runs(session, name)}
        members = {name for name in in_asyncio if _runs(session, f"import asyncio\nasyncio.{name}")}
    assert imported == MODULES - {"__future__", "__main__", "os.path"}
    assert named - known - given == MISSING_BUILTINS
    assert members == IN_ASYNCIO


def _runs(session: pydantic_monty.MontySession, code: str) -> bool:
    try:
        session.feed_run(code, external_lookup={})
    except pydantic_monty.MontyError:
        return False
    return True


# Limits.


async def test_more_calls_than_montys_own_limit_are_made_when_the_run_may(port: Gloveport) -> None:
    code = "n = 0\nfor i in range(1500): n += await tools.add(i, 1)\nn"
    assert await value_of(port, code, limits={"max_calls": 2000}) == sum(range(1, 1501))


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
