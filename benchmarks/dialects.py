"""The same programs in the dialect of each contender: TypeScript, or Python with its way of calling tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.monty import PROGRAM
from benchmarks.programs import PROGRAM_TS

# smolagents has no `**` in a dictionary, and its programs can't reuse the name of a tool.
LINES_PYTHON = PROGRAM.replace(
    "**entry", '"count": entry["count"], "total": entry["total"], "largest": entry["largest"]'
).replace("label(", "shown(")

WORK_PYTHON = """
total = 0
i = 0
while i < 250000:
    total = total + (i * i) % 7
    i = i + 1
words = sorted(map(lambda n: str(n * 7919 % 100003), range(30000)))
checksum = total + len("-".join(words))
""".strip()
WORK_TYPESCRIPT = """
let total = 0;
let i = 0;
while (i < 250000) {
  total = total + (i * i) % 7;
  i = i + 1;
}
const words = Array.from({ length: 30000 }, (_, n) => String(n * 7919 % 100003)).sort();
return total + words.join("-").length;
""".strip()


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a contender. `hundred_at_once` is False if it makes only one call at a time."""

    lines: str
    calls: str
    hundred: str
    work: str
    hundred_at_once: bool
    read: tuple[str, ...]
    connect: tuple[str, ...]
    endless: str
    large: str


# Direct attempts, and one-line attempts through modules that an in-process interpreter may expose.
READ_PYTHON = (
    ("", 'open("{path}").read()'),
    ("from pathlib import Path\n", 'Path("{path}").read_text()'),
    ("import os\n", 'os.popen("cat {path}").read()'),
    ("import asyncio\n", 'asyncio.base_events.os.popen("cat {path}").read()'),
    ("import random\n", 'random._os.popen("cat {path}").read()'),
    ("import statistics\n", 'statistics.sys.modules["os"].popen("cat {path}").read()'),
)
CONNECT_PYTHON = (
    ("import socket\n", 'str(socket.create_connection(("127.0.0.1", {port})))'),
    ("import urllib.request\n", 'str(urllib.request.urlopen("http://127.0.0.1:{port}", timeout=1))'),
    ("import asyncio\n", 'str(asyncio.base_events.socket.create_connection(("127.0.0.1", {port})))'),
    ("import statistics\n", 'str(statistics.sys.modules["socket"].create_connection(("127.0.0.1", {port})))'),
)


def python(call: Callable[[str, str], str], give: str, hundred: str | None) -> Programs:
    """Return the programs in Python. `call` formats a tool call, `give` a result; without `hundred`, calls are sequential."""
    one_by_one = f"""
n = 0
while n < 100:
    n = {call("add", "a=n, b=1")}
{give.format("n")}
"""
    calls = f"""
total = {call("add", "a=1, b=2")}
twice = {call("double", "n=total")}
{give.format(call("label", "n=twice"))}
"""
    return Programs(
        lines=LINES_PYTHON.replace("return summary", give.format("summary")),
        calls=calls,
        hundred=f"import asyncio\n{hundred}\n{give.format('len(found)')}" if hundred else one_by_one,
        work=f"{WORK_PYTHON}\n{give.format('checksum')}",
        hundred_at_once=hundred is not None,
        read=tuple(before + give.format(way) for before, way in READ_PYTHON),
        connect=tuple(before + give.format(way) for before, way in CONNECT_PYTHON),
        endless="while True:\n    pass",
        large=f'text = "a" * 2000000000\n{give.format("len(text)")}',
    )


TYPESCRIPT = Programs(
    lines=PROGRAM_TS,
    calls="""
const total = await tools.add({ a: 1, b: 2 });
const twice = await tools.double({ n: total });
return await tools.label({ n: twice });
""",
    hundred="return (await Promise.all(Array.from({ length: 100 }, (_, i) => tools.add({ a: i, b: 1 })))).length;",
    work=WORK_TYPESCRIPT,
    hundred_at_once=True,
    read=(
        'return (globalThis as any).Deno.readTextFileSync("{path}")',
        'return await (await fetch("file://{path}")).text()',
        'return (await import("node:fs")).readFileSync("{path}", "utf8")',
        'return (await import("file://{path}", { with: { type: "text" } })).default',
    ),
    connect=(
        'return String(await (globalThis as any).Deno.connect({ hostname: "127.0.0.1", port: {port} }))',
        'return String(await fetch("http://127.0.0.1:{port}"))',
        'await new Promise((done) => { new WebSocket("ws://127.0.0.1:{port}").onerror = done })',
        'const net = await import("node:net"); await new Promise((done) => net.connect({port}, "127.0.0.1", done))',
    ),
    endless="while (true) {}",
    large="return new Uint8Array(2000000000).fill(1).length",
)
OURS_PYTHON = python(
    lambda tool, args: f"await tools.{tool}({args})",
    "return {}",
    "found = await asyncio.gather(*[tools.add(a=i, b=1) for i in range(100)])",
)
FASTMCP = python(
    lambda tool, args: f'(await call_tool("{tool}", dict({args})))["result"]',
    "return {}",
    'found = await asyncio.gather(*[call_tool("add", {"a": i, "b": 1}) for i in range(100)])',
)
MONTY = python(
    lambda tool, args: f"await {tool}({args})",
    "{}",
    "found = await asyncio.gather(*[add(a=i, b=1) for i in range(100)])",
)
SMOLAGENTS = python(lambda tool, args: f"{tool}({args})", "{}", None)
UTCP = python(lambda tool, args: f"shop.{tool}({args})", "return {}", None)
