"""Limits hold for Python, where C code computes without a pause and signals can be ignored (threats S11, S13, S14, S17)."""

from __future__ import annotations

import asyncio
import resource

import pytest

from gloveport import Gloveport, Outcome
from tests.shapes import PYTHON_SPINS

pytestmark = pytest.mark.integration

DEPTHS = {
    "a function": "def f(): f()\nf()",
    "a function, without a limit": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "repr in C": "x = []\nfor _ in range(10**5 * 3): x = [x]\nrepr(x)",
    "the result": "x = []\nfor _ in range(10**5 * 3): x = [x]\nx",
    "the end of a chain": "x = []\nfor _ in range(10**5 * 3): x = (x,)\ndel x\nraise ValueError",
    "comparison in C": "import sys\nsys.setrecursionlimit(10**9)\na, b = [], []\nfor _ in range(10**5 * 3): a, b = [a], [b]\na == b",
    "json": "import json, sys\nsys.setrecursionlimit(10**9)\njson.loads('[' * 10**5 * 3)",
    "pickle": "import pickle, sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**5 * 3): x = [x]\npickle.dumps(x)",
    "the compiler": "import sys\nsys.setrecursionlimit(10**9)\neval('-' * 10**5 * 3 + '1')",
    "a tree": "import ast, sys\nsys.setrecursionlimit(10**9)\nn = ast.Constant(1)\nfor _ in range(10**5 * 3): n = ast.UnaryOp(ast.USub(), n)\ncompile(ast.fix_missing_locations(ast.Expression(n)), '', 'eval')",
    "a pattern": "import re, sys\nsys.setrecursionlimit(10**9)\nre.compile('(' * 20000 + ')' * 20000)",
    "attributes of a class": "class A:\n    __getattr__ = lambda s, n: getattr(s, n + 'x')\nA().x",
    "marshal": "import marshal\nmarshal.loads(b'(\\x01\\x00\\x00\\x00' * 10**5 * 3)",
    "iterators": "x = iter(())\nfor _ in range(10**5 * 3): x = map(int, x)\nlist(x)",
}

CRASHES = {
    "a null pointer": "import ctypes\nctypes.string_at(0)",
    "an abort": "import ctypes\nctypes.CDLL(None).abort()",
    "an exit": "import ctypes\nctypes.CDLL(None)._exit(0)",
    "an exit with the code of success and a word": "import ctypes, os\nos.write(2, b'all is well')\nctypes.CDLL(None)._exit(0)",
    "a reference count": "import ctypes\nctypes.memset(id(None), 0, 8)\n[None] * 10\nctypes.memset(id(type), 0, 400)\ntype(1)",
    "a fatal error of the interpreter": "import ctypes\nctypes.pythonapi.Py_FatalError(b'fatal')",
    "a stack of C": "import ctypes, sys\nsys.setrecursionlimit(10**9)\nf = ctypes.CFUNCTYPE(None)(lambda: f())\nf()",
    "a wire that is closed": "import os\nos.closerange(0, 64)",
    "a forged constant": "f = lambda: 0\nf.__code__ = f.__code__.replace(co_consts=(), co_code=bytes([144, 255, 144, 255, 100, 255, 83, 0]))\nf()",
}


async def run_each(port: Gloveport, programs: dict[str, str], at_once: int, **limits: float) -> dict[str, Outcome]:
    """The outcome of each program, some at a time."""
    room = asyncio.Semaphore(at_once)

    async def one(name: str) -> tuple[str, Outcome]:
        async with room:
            return name, await port.run(programs[name], language="python", limits=limits)

    return dict(await asyncio.gather(*map(one, programs)))


def codes(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: "ok" if outcome.error is None else outcome.error.code for name, outcome in outcomes.items()}


@pytest.mark.parametrize("name", ["loop", "power in C", "signals ignored"])
async def test_what_only_computes_is_ended_by_its_own_limit(port: Gloveport, name: str) -> None:
    outcome = await port.run(PYTHON_SPINS[name], language="python", limits={"cpu_seconds": 0.3, "wall_seconds": 300})
    assert outcome.error is not None
    assert outcome.error.code == "cpu-limit"


async def test_depth_is_a_failure_of_the_program_and_no_more(port: Gloveport) -> None:
    outcomes = await run_each(port, DEPTHS, 3, wall_seconds=300, memory_mb=64)
    allowed = {"program-failed", "bad-value", "sandbox-crashed", "memory-limit"}
    assert {name: code for name, code in codes(outcomes).items() if code not in allowed} == {}


async def test_a_crash_is_an_outcome_and_the_next_program_runs(port: Gloveport) -> None:
    outcomes = await run_each(port, CRASHES, 3, wall_seconds=300)
    assert codes(outcomes) == dict.fromkeys(CRASHES, "sandbox-crashed")
    after = await port.run("await tools.add(a=1, b=2)", language="python")
    assert after.value == 3


async def test_a_gigabyte_of_output_is_cut_with_a_count(port: Gloveport) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "import os, sys\nline = 'x' * 2**20\nfor _ in range(1024): print(line)\nos.write(2, b'x' * 10**4)\n'end'"
    outcome = await port.run(flood, language="python")
    assert outcome.value == "end"
    assert sum(len(line.text) for line in outcome.logs) <= 256 * 1024
    assert any("were left out" in warning for warning in outcome.warnings)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


LINES = {
    "a loop": ("n = 0\nwhile True: n += 1", 2),
    "code in C, called by a function": ("def f():\n    return sum(range(10**10))\n\nf()", 2),
    "a sleep": ("import time\ntime.sleep(30)", 2),
    "a wait for a timer": ("import asyncio\nn = 1\nawait asyncio.sleep(30)", 3),
    "a wait for a call": ("n = 1\nawait tools.forever()", 2),
}


async def forever() -> None:
    """Never answers."""
    await asyncio.Event().wait()


@pytest.mark.parametrize("name", LINES)
async def test_a_time_limit_names_the_line_where_the_program_was(name: str) -> None:
    code, line = LINES[name]
    async with Gloveport(tools=[forever], limits={"wall_seconds": 0.5}) as port:
        error = (await port.run(code, language="python")).error
    assert error is not None
    assert (error.code, error.line) == ("time-limit", line), error
    assert error.frame is not None and error.frame.startswith(f"{line} | ")
    assert ("waiting for tools.forever" in error.message) == ("forever" in code)


async def test_a_frame_that_finds_no_memory_is_a_limit_of_memory() -> None:
    async with Gloveport(limits={"memory_mb": 64}) as port:
        error = (await port.run("x = None\nwhile True: x = (lambda y: lambda: y)(x)", language="python")).error
    assert error is not None
    assert (error.code, error.line) == ("memory-limit", 2), error  # of CPython's, that is a SystemError


async def test_a_cpu_limit_names_the_line_where_the_program_was() -> None:
    async with Gloveport(limits={"cpu_seconds": 0.4}) as port:
        error = (await port.run("n = 0\n\nwhile True:\n    n += 1", language="python")).error
    assert error is not None
    assert (error.code, error.line in (3, 4)) == ("cpu-limit", True), error


HOSTILE = {
    "a handler that never returns": "import signal\ndef f(*_):\n    while True: pass\nsignal.signal(signal.SIGUSR1, f)\nwhile True: pass",
    "the signal ignored": "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\nwhile True: pass",
    "a line of its own": "import os\nos.write(2, b'File \"program.py\", line 9999999 in <module>')\nwhile True: pass",
    "much output": "import os\nfor _ in range(3): os.write(2, b'x' * 16000)\nwhile True: pass",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_program_gains_nothing_from_being_asked_where_it_is(name: str) -> None:
    async with Gloveport(limits={"wall_seconds": 0.6}) as port:
        outcome = await port.run(HOSTILE[name], language="python")
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
    assert outcome.error.line is None or outcome.error.line <= HOSTILE[name].count("\n") + 1
    assert outcome.usage.wall_seconds < 5


async def test_a_program_that_faults_when_it_is_asked_where_it_is_has_hit_its_limit(port: Gloveport) -> None:
    """The watchdog signals the process just before it kills it; the handler may read a stack frame under construction."""
    code = "import ctypes, signal\nsignal.signal(signal.SIGUSR1, lambda *_: ctypes.string_at(0))\nwhile True:\n    pass"
    outcome = await port.run(code, language="python", limits={"wall_seconds": 1})
    assert outcome.error is not None
    assert outcome.error.code == "time-limit"
