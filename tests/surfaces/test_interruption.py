"""Ctrl-C and SIGTERM end every command while its sources open, and leave no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.surfaces.command import COMMAND, DEADLINE, all_end, descendants, environment, read_until

pytestmark = pytest.mark.integration

MCP_SERVER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
while True:
    time.sleep(1000)
"""
SPIN = """
import sys, time
from gloveport.surfaces.interruption import run_interruptible
async def work():
    print("started", flush=True)
    WORK
run_interruptible(work())
"""


@contextmanager
def silent_server() -> Iterator[tuple[socket.socket, str]]:
    """Yield a server on loopback that accepts connections and never answers, and its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def command(folder: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*COMMAND, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=folder,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


COMMANDS = (
    ("tools", "list", "slow"),
    ("tools", "call", "slow.x"),
    ("tools", "changes", "slow"),
    ("add", "URL", "--private"),
    ("run", "-e", "await tools.slow.x()"),
    ("mcp",),
    ("serve", "--port", "0"),
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_command_ends_while_a_source_never_answers(args: tuple[str, ...], number: int, folder: Path) -> None:
    with silent_server() as (server, url):
        file = folder / "named.toml"
        file.write_text(f'[sources.slow]\nopenapi = "{url}/api.json"\nallow_private = true\ntimeout_seconds = 3600\n')
        given = [word.replace("URL", f"{url}/api.json") for word in args]
        with command(folder, *given, *(() if args[0] == "add" else ("--config", str(file)))) as process:
            server.settimeout(DEADLINE)
            connection, _ = server.accept()  # from now on it waits for the answer
            with connection:
                below = descendants(process.pid)
                process.send_signal(number)
                assert process.wait(DEADLINE) in ((0,) if args[0] in ("mcp", "serve") else (130,))
        assert all_end(below)


@contextmanager
def listing_of_a_stubborn_server(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that waits for an MCP server which ignores signals, and a pidfd of the server."""
    (folder / "server.py").write_text(MCP_SERVER)
    note, file = folder / "pid", folder / "named.toml"
    os.mkfifo(note)
    argv = f'["{sys.executable}", "{folder / "server.py"}", "{note}"]'
    file.write_text(f"[sources.slow]\nmcp = {argv}\n")
    with command(folder, "tools", "list", "slow", "--config", str(file)) as process:
        yield process, os.pidfd_open(int(note.read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_ignores_signals_is_not_left_behind(number: int, folder: Path) -> None:
    with listing_of_a_stubborn_server(folder) as (process, server):
        process.send_signal(number)
        assert process.wait(DEADLINE) == 130
        assert all_end([server])


def test_a_second_signal_ends_it_at_once_and_its_children_too(folder: Path) -> None:
    with listing_of_a_stubborn_server(folder) as (process, server):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 130
        assert all_end([server])


def test_functions_that_take_for_ever_to_import_are_given_up(folder: Path) -> None:
    note, file = folder / "note", folder / "named.toml"
    os.mkfifo(note)
    (folder / "slow.py").write_text(f"open({str(note)!r}, 'w').close()\nimport time\ntime.sleep(1000)\n")
    file.write_text('[sources.slow]\nfunctions = "slow.py"\n')
    with command(folder, "tools", "list", "slow", "--config", str(file)) as process:
        note.read_text()  # returns when the import has begun
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130


@pytest.mark.parametrize("work", ["time.sleep(1000)", "while True: pass"])
def test_a_loop_that_does_not_turn_does_not_keep_a_command_alive(work: str) -> None:
    script = "import gloveport.surfaces.interruption as i\ni.STOP_TIMEOUT_SECONDS = 0.2\n" + SPIN.replace("WORK", work)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout
        read_until(process.stdout.fileno(), "started")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 130
