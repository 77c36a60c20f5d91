"""Bundles packages and modules of a project into one script, in the jail: esbuild reads hostile files, and only those.

It gets no more than a guest: a read-only folder of modules, no network, no environment. It is killed over its budget.
What it answers is a program text like any other: it runs in a sandbox, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from gloveport.errors import PackageError
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.launcher import Launch
from gloveport.sandbox.watchdog import WATCHDOG, Watched
from gloveport.types import MIB, Strength

MODULES_FOLDER = "/modules/node_modules"
MAX_SCRIPT_BYTES = 12 * MIB
MAX_ERROR_CHARS = 4000
MAX_CPU_SECONDS = 30.0
MAX_WAIT_SECONDS = 60.0
MAX_MEMORY_MB = 1536
_READ_BYTES = 256 * 1024
_NODE = """
    assert assert/strict async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns
    dns/promises domain events fs fs/promises http http2 https inspector module net os path path/posix path/win32 perf_hooks
    process punycode querystring readline readline/promises repl stream stream/consumers stream/promises stream/web
    string_decoder sys timers timers/promises tls trace_events tty url util util/types v8 vm wasi worker_threads zlib
"""
_FLAGS = (
    "--bundle",
    "--format=cjs",
    "--platform=browser",
    "--target=es2023",
    "--minify-whitespace",
    "--minify-syntax",
    "--legal-comments=none",
    "--charset=utf8",
    "--loader=ts",
    "--log-level=error",
    "--log-limit=3",
    "--color=false",
    '--define:process.env.NODE_ENV="production"',
    "--external:node:*",
    *(f"--external:{name}" for name in _NODE.split()),
)
BUNDLER = " ".join(_FLAGS)
"""How scripts are made, beside the version of esbuild: a part of their digest."""


async def bundle(esbuild: Path, modules: Path, entry: str, minimum: Strength) -> str:
    """Return one script of CommonJS for an entry, whose imports are looked up in a `node_modules` folder.

    Imports of Node's modules stay calls of `require`. Raise PackageError with what esbuild says when it can't be made.
    """
    launch = Launch(
        executable=str(esbuild),
        argv=("esbuild", *_FLAGS),
        env={"NODE_PATH": MODULES_FOLDER, "GOMAXPROCS": "2", "HOME": "/"},
        files={},
        folders={MODULES_FOLDER: Folder(str(modules))},
        is_go=True,
    )
    launcher = launch.launcher(minimum)
    try:
        await launcher.start()
        guest = await launcher.spawn()
        try:
            guest.set_limits(data_bytes=MAX_MEMORY_MB * MIB, cpu_seconds=int(MAX_CPU_SECONDS) + 1)
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                return await _run(guest, entry)
        finally:
            guest.close()
    except TimeoutError:
        raise PackageError("bundling the packages takes too long") from None
    finally:
        await launcher.close()


async def _run(guest: Guest, entry: str) -> str:
    watched = Watched(guest.pid, guest.pidfd, max_cpu_seconds=MAX_CPU_SECONDS, max_held_bytes=MAX_MEMORY_MB * MIB)
    watch = WATCHDOG.watch(watched)
    loop = asyncio.get_running_loop()
    script = bytearray()
    try:
        with contextlib.suppress(ConnectionError):  # it has died: its exit says so
            await loop.sock_sendall(guest.socket, entry.encode())
            guest.socket.shutdown(1)
            while data := await loop.sock_recv(guest.socket, _READ_BYTES):
                script += data
                if len(script) > MAX_SCRIPT_BYTES:
                    raise PackageError(f"the program's imports are larger than {MAX_SCRIPT_BYTES // MIB} MiB")
        ended = await guest.wait()
        said = b""
        with contextlib.suppress(OSError):
            said = os.read(guest.stderr, MAX_ERROR_CHARS)
    finally:
        watch.stop()
    if watch.exceeded is not None:
        raise PackageError("bundling the packages takes too much time or memory")
    if ended.code != 0:
        raise PackageError(f"the packages can't be bundled: {_problem(said)}")
    try:
        return script.decode()
    except UnicodeDecodeError:
        raise PackageError("the packages can't be bundled: the script is no text") from None


def _problem(said: bytes) -> str:
    text = said.decode(errors="replace").strip()
    return text[:MAX_ERROR_CHARS] or "esbuild was killed"
