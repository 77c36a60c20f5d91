"""The command line: its arguments, a project's settings, standard input, and what it shows of a run.

Each command runs in a fork of the warm host, which has a heartbeat of its own: a command makes its own event loop. Before
that loop and after it, the command must take signals, so that Ctrl-C ends it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pkgutil
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import gloveport
from fuzz.stall.definitions import SEEDS as DEFINITIONS
from fuzz.stall.entrance import MIB, Attack, Document, Elsewhere, Entrance, Refusal, Take, use_empty_folders
from fuzz.stall.heartbeat import Heartbeat
from fuzz.stall.measurement import cpu_seconds
from fuzz.stall.programs import MARKS
from fuzz.stall.recipe import expand, many, nest, times
from fuzz.stall.requests import META
from gloveport.surfaces.cli.main import main

LAZY = re.compile(r"\.adapters\.|\.guest\b|__main__|\.self_test\.")
SEPARATOR = "\x1f"  # between the arguments of a command
MAX_CPU_SECONDS = 4  # of a command, before it is ended, and what it did until then is judged
HANG_CPU_SECONDS = 6  # before it is killed
POLL_SECONDS = 0.01
MAX_ARGUMENT_BYTES = 100_000  # the kernel passes no more than 128 KiB in one
MODULES = (
    *(found.name for found in pkgutil.walk_packages(gloveport.__path__, "gloveport.") if not LAZY.search(found.name)),
    *("numpy", "safetensors.numpy", "tokenizers"),
)
"""All that a command may import when it runs: a fork must not spend its time on that."""
TOOLS = '''def echo(value: object = None) -> object:
    """Give back what was given."""
    return value
'''


@asynccontextmanager
async def opened() -> AsyncIterator[Take]:
    """Run each command in a folder with the files of the input."""
    for name in MODULES:
        importlib.import_module(name)

    async def take(document: Document) -> Attack:
        use_empty_folders()
        folder = Path.cwd() / "project"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "tools.py").write_text(TOOLS)
        for name, key in (
            ("gloveport.toml", "toml"),
            ("file", "file"),
            ("file.ts", "file"),
            ("api.json", "api"),
            ("stdin", "stdin"),
        ):
            (folder / name).write_bytes(document.get(key, "").encode("utf-8", "surrogatepass"))
        argv = [
            word.encode()[:MAX_ARGUMENT_BYTES].decode("utf-8", "ignore").replace("\0", "")
            for word in document["argv"].split(SEPARATOR)
        ]

        async def attack() -> Elsewhere:
            return await _in_a_fork(folder, argv)

        return attack

    yield take


async def _in_a_fork(folder: Path, argv: list[str]) -> Elsewhere:
    with tempfile.TemporaryFile() as told:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            _run(folder, argv, told.fileno())
        status = await _ended(pid)
        told.seek(0)
        report = told.read()
    if not report:
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        died = Refusal("internal-error", f"the command died with status {status}")
        return Elsewhere(HANG_CPU_SECONDS, "", None) if hung else Elsewhere(0.0, "", died)
    seconds, stacks, code, out = json.loads(report)
    return Elsewhere(seconds, stacks, _refusal(code, out))


async def _ended(pid: int) -> int:
    """Return the exit status of a command, which is killed when it hangs inside of one long step."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
        if ended:
            return status
        if cpu_seconds(pid) > HANG_CPU_SECONDS:
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(POLL_SECONDS)


def _run(folder: Path, argv: list[str], report: int) -> NoReturn:
    """Run the command in this process, which is a fork, and report how long its loops stood still."""
    asyncio.events._set_running_loop(None)  # that of the parent
    heartbeat = Heartbeat.of_process
    assert heartbeat is not None
    os.chdir(folder)
    out, code = tempfile.TemporaryFile(), 1  # noqa: SIM115 - the process ends with it

    def end(*_: object) -> NoReturn:
        heartbeat.stop()
        out.seek(0)
        shown = out.read(MIB)[-2000:].decode("utf-8", "replace")
        os.write(report, json.dumps([heartbeat.longest, heartbeat.stacks()[:6000], code, shown]).encode())
        os._exit(0)

    signal.signal(signal.SIGXCPU, end)
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, resource.RLIM_INFINITY))
    os.dup2(os.open("stdin", os.O_RDONLY), 0)
    os.dup2(out.fileno(), 1)
    os.dup2(out.fileno(), 2)
    heartbeat.start_in_fork()
    with heartbeat.measure():
        try:
            main(argv)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        sys.stdout.flush()
        end()


def _refusal(code: int, out: str) -> Refusal | None:
    if "internal error" in out or "Traceback" in out:
        return Refusal("internal-error", out)
    return Refusal("bad-option", out) if code else None


_LISTEN = (
    '{"jsonrpc":"2.0","id":"<i>","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},'
    f'"_meta":{json.dumps(META)}}}}}\n'
)


def _command(*argv: Any, **files: Any) -> Document:
    words: list[Any] = []
    for word in argv:
        words += [SEPARATOR, word] if words else [word]
    return {"argv": words, **files}


def _run_file(*code: Any, argv: tuple[str, ...] = (), **files: Any) -> Document:
    return _command("run", "file.ts", "--timeout", "20", "--cpu", "2", *argv, file=list(code), **files)


API = '[sources.api]\nopenapi = "api.json"\nbase_url = "http://127.0.0.1:9"\n'


def _api(name: str, *argv: str) -> Document:
    return _command(*argv, toml=API, api=expand(DEFINITIONS[name]["text"], MIB))


SEEDS: dict[str, Document] = {
    # known way: a project's file names a hostile definition, and every command there reads it
    "hostile-project-tools": _api("openapi-version-path", "tools", "list"),
    "hostile-project-sources": _api("openapi-version-path", "sources"),
    "hostile-project-run": {**_api("openapi-version-path", "run", "file.ts"), "file": "await tools.api.x()"},
    "hostile-project-search": _api("openapi-marks-operation", "tools", "search", "x"),
    # settings
    "toml-keys": _command("sources", toml={"count": 20_000, "of": "k<i> = 1\n"}),
    "toml-sources": _command("sources", toml={"count": 200, "of": '[sources.s<i>]\nopenapi = "no.json"\n'}),
    "toml-dots": _command("sources", toml=["a", times(5_000, ".a"), " = 1\n"]),
    "toml-tables": _command("sources", toml={"count": 3_000, "of": "[a<i>.b.c]\n"}),
    "toml-lists": _command("sources", toml=["a = ", nest(500, "[", "", "]"), "\n"]),
    "toml-inline": _command("sources", toml=["a = ", nest(200, "{a=", "1", "}"), "\n"]),
    "toml-text": _command("sources", toml=['a = """', times(900_000, "x"), '"""\n']),
    "toml-digits": _command("sources", toml=["a = 1", times(4_000, "0"), "\n"]),
    "toml-dates": _command("sources", toml={"count": 10_000, "of": "k<i> = 1979-05-27T07:32:00Z\n"}),
    "toml-misspelt": _command("sources", toml={"count": 500, "of": "[sources.s<i>]\nopenapy = 1\n"}),
    "toml-patterns": _command(
        "sources",
        toml=[API, 'include = ["', times(30, "*a"), '"]\n'],
        api=json.dumps({"openapi": "3.1.0", "paths": {"/" + "a" * 60: {"get": {"responses": {}}}}}),
    ),
    # arguments
    "command": _command(times(90_000, "r")),
    "option": _command("run", ["--", times(90_000, "t")]),
    "marks-command": _command(times(20_000, "\u0345\u0301")),
    "language": _command("run", "-e", "1", "--language", times(90_000, "p")),
    "timeout": _command("run", "-e", "1", "--timeout", times(90_000, "1")),
    "memory": _command("run", "-e", "1", "--memory", times(4_000, "1")),
    "environment": _command("run", "-e", "1", "--env", ["A=", times(90_000, "x")]),
    "fields": _command("run", "-e", "1", "--fields", many(10_000, "f<i>")),
    "input": _command("run", "-e", "1", "--input", "@file", file=["[", many(100_000, "1"), "]"]),
    "input-keys": _command("run", "-e", "1", "--input", "@file", file=["{", many(60_000, '"k<i>":1'), "}"]),
    "input-depth": _command("run", "-e", "1", "--input", "@file", file=nest(100_000, "[", "", "]")),
    "input-digits": _command("run", "-e", "1", "--input", "@file", file=times(4_000, "9")),
    "search": _command(
        "tools", "search", times(90_000, "a "), toml=API, api='{"openapi":"3.1.0","paths":{"/a":{"get":{"responses":{}}}}}'
    ),
    "describe": _command(
        "tools",
        "describe",
        times(90_000, "a."),
        toml=API,
        api='{"openapi":"3.1.0","paths":{"/a":{"get":{"responses":{}}}}}',
    ),
    "help-code": _command("help", times(90_000, "h")),
    # what it shows
    "logs": _run_file("for (let i = 0; i < 20000; i++) console.log('a')"),
    "marks-logs": _run_file(f"console.log('{MARKS}'.repeat(80000))"),
    "escape-logs": _run_file("console.log('\\x1b[31m\\u202e'.repeat(60000))"),
    "control-logs": _run_file("console.log('\\x1b'.repeat(250000))"),
    "line-logs": _run_file("console.log('\\n'.repeat(250000))"),
    "result": _run_file("return 'x'.repeat(2000000)"),
    "marks-result": _run_file(f"return '{MARKS}'.repeat(300000)"),
    "wide-result": _run_file("return Object.fromEntries(Array.from({length: 50000}, (_, i) => [i, i]))"),
    "list-result": _run_file("return Array.from({length: 300000}, (_, i) => i)"),
    "json-result": _run_file("return Array.from({length: 300000}, (_, i) => i)", argv=("--json",)),
    "nested-result": _run_file("let x: any = 1; for (let i = 0; i < 100; i++) x = {a: x}; return Array(200).fill(x)"),
    "error": _run_file("throw new Error('\\x1b\\u0301'.repeat(500000))"),
    "error-lines": _run_file("throw new Error('a\\n'.repeat(300000))"),
    "emits": _run_file("for (let i = 0; i < 20000; i++) emit('\\u0301'.repeat(20))"),
    "long-line": _run_file("/* ", times(100_000, MARKS), "*/ throw new Error('a')"),
    "calls": _run_file(
        "for (let i = 0; i < 300; i++) await tools.echo({value: '\\u0301\\x1b'.repeat(2000)})", argv=("--tools", "tools.py")
    ),
    "call-arguments": _run_file("await tools.echo({value: '\\u0301\\x1b'.repeat(300000)})", argv=("--tools", "tools.py")),
    # the MCP server on standard input
    "stdio": _command("mcp", stdin='{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
    "stdio-keys": _command(
        "mcp", stdin=['{"jsonrpc":"2.0","id":1,"method":"ping","params":{', many(60_000, '"k<i>":1'), "}}\n"]
    ),
    "stdio-depth": _command("mcp", stdin=[nest(300_000, "[", "", "]"), "\n"]),
    "stdio-digits": _command("mcp", stdin=['{"jsonrpc":"2.0","id":', times(900_000, "9"), ',"method":"ping"}\n']),
    "stdio-lines": _command("mcp", stdin=times(50_000, "{}\n")),
    "stdio-burst": _command("mcp", stdin=times(20_000, '{"jsonrpc":"2.0","id":1,"method":"ping"}\n')),
    "stdio-notifications": _command("mcp", stdin=times(20_000, '{"jsonrpc":"2.0","method":"notifications/x"}\n')),
    "stdio-listeners": _command("mcp", stdin={"count": 1_000, "of": _LISTEN}),
    "stdio-text": _command("mcp", stdin=['{"jsonrpc":"2.0","id":1,"method":"', times(900_000, "\\u0301"), '"}\n']),
}
WORDS = (
    "run",
    "tools",
    "sources",
    "search",
    "describe",
    "list",
    "--json",
    "--input",
    "--fields",
    "-e",
    "@file",
    SEPARATOR,
    "[sources.a]\n",
    "openapi = ",
    "console.log(",
    "emit(",
    "throw new Error(",
    "return ",
    ".repeat(99999)",
    "\\x1b",
    "\\u0301",
    "\\n",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "=",
    ".",
    "9",
    "\u0345",
)
ENTRANCE = Entrance("commands", __name__, opened, SEEDS, _command("version"), WORDS, MIB)
