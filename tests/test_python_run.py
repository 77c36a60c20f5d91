"""Python programs from the outside: text in, Outcome out, in the jail."""

import asyncio
from typing import Any

import pytest

from gloveport import Gloveport


async def value_of(port: Gloveport, code: str, **options: Any) -> Any:
    outcome = await port.run(code, language="python", **options)
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
        "return await tools.add(a=1, b=2)",
        "async def main():\n    return await tools.add(a=1, b=2)",
        "async def main(tools):\n    return await tools.add(a=1, b=2)",
        "Here is the program:\n```python\nx = await tools.add(a=1, b=2)\nx\n```\nDone.",
        "import asyncio\nsum(await asyncio.gather(tools.add(a=1, b=0), tools.add(a=2, b=0)))",
        "def gen():\n    yield 1\n    yield 2\nsum(gen())",
        "(\n1 + 2\n)",
        "x = 3\n(x\n)",
        "a = 1; a + 2",
        "x = 3\nx;",
        "x = 1 + \\\n2\nx  # the end\n\n",
        "x = '''\n'''\nx.count('\\n') + 2",
        "if False:\n    return 5\n1 + 2",
        "x = 1\r\nx + 2\r\n",
        "x = 1\rx + 2",
        "class A:\n    def __init__(self, x):\n        self.x = x\nA(3).x",
    ],
)
async def test_every_form_gives_its_value(port: Gloveport, code: str) -> None:
    assert await value_of(port, code) == 3


async def test_print_is_captured_and_errors_have_their_place(port: Gloveport) -> None:
    outcome = await port.run("print('hello', {'a': 1})\nx = {}\nx['gone']", language="python")
    assert [line.text for line in outcome.logs] == ["hello {'a': 1}"]
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.type, outcome.error.line) == ("program-failed", "KeyError", 3)
    assert "x['gone']" in (outcome.error.frame or "")


async def test_a_failed_call_can_be_caught(port: Gloveport) -> None:
    code = "try:\n    await tools.fail(message='nope', code='quota')\nexcept ToolError as e:\n    r = [e.code, e.tool, str(e)]\nr"
    value = await value_of(port, code)
    assert value[0] == "quota"
    assert "nope" in value[2]


async def test_names_arguments_and_imports_are_checked_before_the_run(port: Gloveport) -> None:
    for code, error in (
        ("await tools.get_wether(city='Oslo')", "unknown-tool"),
        ("await tools.get_weather(cty='Oslo')", "bad-arguments"),
        ("import requests", "import-refused"),
        ("def f(:\n    pass", "syntax-error"),
    ):
        outcome = await port.run(code, language="python")
        assert outcome.error is not None
        assert outcome.error.code == error
        assert outcome.calls == ()


async def test_limits_hold(port: Gloveport) -> None:
    spin = await port.run("while True: pass", language="python", limits={"wall_seconds": 1})
    bomb = await port.run("x = []\nwhile True: x.append(bytearray(10**7))", language="python", limits={"memory_mb": 64})
    assert spin.error is not None
    assert spin.error.code == "time-limit"
    assert bomb.error is not None
    assert bomb.error.code == "memory-limit"


async def test_time_is_slept_on_the_hosts_clock(port: Gloveport) -> None:
    code = "import time, asyncio\na = time.time()\ntime.sleep(0.05)\nawait asyncio.sleep(0.05)\ntime.time() - a"
    assert await value_of(port, code) >= 0.09


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "open('/guest/x', 'w')",
        "import socket\nsocket.create_connection(('127.0.0.1', 1))",
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nr = c.socket(2, 1, 0)\nassert r >= 0",
        "import os\nos.kill(os.getppid() or 2, 9)",
    ],
)
async def test_full_python_reaches_nothing(port: Gloveport, code: str) -> None:
    outcome = await port.run(code, language="python")
    assert outcome.status == "failed"


async def test_both_languages_run_side_by_side(port: Gloveport) -> None:
    both = await asyncio.gather(port.run("await tools.add(1, 2)"), port.run("await tools.add(1, 2)", language="python"))
    assert [outcome.value for outcome in both] == [3, 3]
