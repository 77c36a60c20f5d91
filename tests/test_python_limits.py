"""Limits hold for Python, where C code computes without a pause and signals can be ignored (threats S11, S12, S13, S14, S17)."""

from __future__ import annotations

import asyncio
import resource
import time

import pytest

from gloveport import Gloveport, Outcome

SPINS = {
    "loop": "while True: pass",
    "await of nothing": "import asyncio\nwhile True: await asyncio.sleep(0)",
    "awaitable that always yields": "class A:\n    def __await__(self):\n        while True: yield\nawait A()",
    "iterator in C": "import itertools\nsum(itertools.repeat(1))",
    "any of a count": "import itertools\nany(n < 0 for n in itertools.count())",
    "sum of a range": "sum(range(10**13))",
    "member of a range": "'x' in range(10**13)",
    "regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "comparison while sorting": "class A:\n    def __lt__(self, other):\n        while True: pass\nsorted([A(), A()])",
    "hash in a dictionary": "class A:\n    def __hash__(self):\n        while True: pass\n{A(): 1}",
    "colliding hashes": "class A:\n    __hash__ = lambda s: 1\n    __eq__ = lambda s, o: s is o\n{A() for _ in range(10**6)}",
    "power in C": "pow(3, 10**9 + 7, 10**60000 + 1)",
    "digits of a number": "import sys\nsys.set_int_max_str_digits(0)\nstr(7**(2**23))",
    "product in C": "x = 3**(2**22)\nwhile True: y = x * x",
    "factorial": "import math\nmath.factorial(10**7)",
    "permutations": "import itertools\nlist(x for x in itertools.permutations(range(20)) if x is None)",
    "text compared": "import difflib\ndifflib.SequenceMatcher(None, 'ab' * 20000, 'ba' * 20000, False).ratio()",
    "decompression": "import zlib\nd = zlib.compress(bytes(10**7))\nwhile True: zlib.decompress(d)",
    "key stretching in C": "import hashlib\nhashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)",
    "finalizer": "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
    "error swallowed": "while True:\n    try:\n        raise KeyboardInterrupt\n    except BaseException: pass",
    "text of an error": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "signals ignored": "import signal\nfor s in (1, 2, 3, 10, 12, 13, 14, 15, 24, 25):\n    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
    "wait in C": "import ctypes\nctypes.CDLL(None).sleep(1000)",
    "wait for a socket": "import socket\na, b = socket.socketpair()\na.recv(1)",
    "lock taken twice": "import _thread\nl = _thread.allocate_lock()\nl.acquire()\nl.acquire()",
    "trace hook": "import sys\ndef f(*a):\n    while True: pass\nsys.settrace(f)\n(lambda: 0)()",
}

BOMBS = {
    "list": "x = []\nwhile True: x.append([0] * 1000)",
    "bytes repeated": "x = []\nwhile True: x.append(b'x' * 10**7)",
    "text doubled": "x = 'x'\nwhile True: x += x",
    "one bytearray": "bytearray(2**40)",
    "list repeated": "[0] * 2**36",
    "whole number": "1 << (1 << 40)",
    "width of a format": "'{:>{}}'.format('x', 2**34)",
    "dictionary": "x = {}\nwhile True: x[len(x)] = str(len(x))",
    "closures": "x = None\nwhile True: x = (lambda y: lambda: y)(x)",
    "instances": "class A: pass\nx = []\nwhile True:\n    a = A()\n    a.b = {}\n    x.append(a)",
    "tasks": "import asyncio\nx = []\nasync def f(): await asyncio.sleep(10**6)\nwhile True: x.append(asyncio.ensure_future(f()))",
    "tee of an iterator": "import itertools\na, b = itertools.tee(itertools.count())\nfor _ in a: pass",
    "decompression": "import zlib\nd = zlib.decompressobj()\nc = zlib.compress(bytes(10**8))\nx = []\nwhile True: x.append(zlib.decompress(c))",
    "database in memory": "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t (c)')\nwhile True: d.execute('insert into t values (zeroblob(1000000))')",
    "mapping": "import mmap\nx = []\nwhile True:\n    m = mmap.mmap(-1, 10**7, mmap.MAP_PRIVATE)\n    m.write(b'x' * 10**7)\n    x.append(m)",
    "malloc": "import ctypes\nl = ctypes.CDLL(None)\nl.malloc.restype = ctypes.c_void_p\nwhile True:\n    p = l.malloc(10**7)\n    if not p: raise MemoryError\n    ctypes.memset(p, 1, 10**7)",
    "arguments of a call": "f = lambda *a: 0\nf(*iter(lambda: 0, 1))",
    "traceback": "def f(n, e=None):\n    x = bytearray(10**6)\n    try:\n        raise ValueError from e\n    except ValueError as error:\n        return error\ne = None\nwhile True: e = f(0, e)",
}

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


async def test_every_spin_is_ended_in_time(port: Gloveport) -> None:
    began = time.monotonic()
    outcomes = await run_each(port, SPINS, len(SPINS), wall_seconds=2, cpu_seconds=30)
    assert codes(outcomes) == dict.fromkeys(SPINS, "time-limit")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", ["loop", "power in C", "signals ignored"])
async def test_what_only_computes_is_ended_by_its_own_limit(port: Gloveport, name: str) -> None:
    outcome = await port.run(SPINS[name], language="python", limits={"cpu_seconds": 0.3, "wall_seconds": 60})
    assert outcome.error is not None
    assert outcome.error.code == "cpu-limit"


async def test_every_memory_bomb_is_capped_and_the_host_does_not_grow(port: Gloveport) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = await run_each(port, BOMBS, 3, memory_mb=96, cpu_seconds=60, wall_seconds=60)
    expected = dict.fromkeys(BOMBS, "memory-limit") | {"mapping": "program-failed"}  # an OSError, says mmap
    assert codes(outcomes) == expected
    assert max(outcome.usage.memory_peak_mb for outcome in outcomes.values()) < 96 * 1.1 + 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


async def test_depth_is_a_failure_of_the_program_and_no_more(port: Gloveport) -> None:
    outcomes = await run_each(port, DEPTHS, 3, wall_seconds=30, memory_mb=64)
    allowed = {"program-failed", "bad-value", "sandbox-crashed", "memory-limit"}
    assert {name: code for name, code in codes(outcomes).items() if code not in allowed} == {}


async def test_a_crash_is_an_outcome_and_the_next_program_runs(port: Gloveport) -> None:
    outcomes = await run_each(port, CRASHES, 3, wall_seconds=30)
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
