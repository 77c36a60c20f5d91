"""Runs the command line as real processes, through pipes or on a real pseudo-terminal."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
TOOLS = str(Path(__file__).with_name("some_tools.py"))
COMMAND = (sys.executable, "-m", "gloveport.surfaces.cli.main")
PATIENT_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("patient_command.py")))
DEADLINE = 240.0
PASSED_ON = ("PATH", "HOME", "CANARY_SECRETS")


@dataclass(frozen=True)
class Finished:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def environment(**changes: str) -> dict[str, str]:
    """Return an environment without variables that decide about colours."""
    kept = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("XDG_")}
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(REPOSITORY / "src"))))
    return {**kept, "PYTHONPATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", **changes}


def gloveport(
    *args: str,
    stdin: str | bytes = b"",
    cwd: Path | None = None,
    prefix: tuple[str, ...] = (),
    patient: bool = False,
    **env: str,
) -> Finished:
    """Run the command until it ends; a patient one waits for sources that it does not name until they are open."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*prefix, *(PATIENT_COMMAND if patient else COMMAND), *args],
        input=given,
        capture_output=True,
        env=environment(**env),
        cwd=cwd,
        timeout=DEADLINE,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextlib.contextmanager
def started(*args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the running command with pipes; end it with the block."""
    with subprocess.Popen(
        [*COMMAND, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(fd: int, pattern: str) -> str:
    """Read from a descriptor up to the end of the text that the pattern matches."""
    end, seen = time.monotonic() + DEADLINE, b""
    while not re.search(pattern, seen.decode("utf-8", "replace")):
        left = end - time.monotonic()
        ready = select.select([fd], [], [], max(left, 0))[0]
        assert ready, f"{pattern!r} did not come; what came: {seen.decode('utf-8', 'replace')!r}"
        piece = _read(fd)
        assert piece, f"{pattern!r} did not come before the end; what came: {seen.decode('utf-8', 'replace')!r}"
        seen += piece
    return seen.decode("utf-8", "replace")


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the other end of a pseudo-terminal is closed
        return b""


class Terminal:
    """A command on its own pseudo-terminal."""

    def __init__(self, *args: str, columns: int = 100, lines: int = 40, **env: str) -> None:
        self.fd, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *COMMAND, *args],  # makes Ctrl-C typed on it a signal
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=environment(**env),
        )
        os.close(inner)

    def until(self, pattern: str) -> str:
        """Return what the terminal got, up to the end of the text that the pattern matches."""
        return read_until(self.fd, pattern)

    def press(self, keys: bytes) -> None:
        """Type text."""
        os.write(self.fd, keys)

    def rest(self) -> tuple[int, str]:
        """Return the exit code, and everything that the terminal got until then."""
        end, seen = time.monotonic() + DEADLINE, b""
        while select.select([self.fd], [], [], max(end - time.monotonic(), 0))[0]:
            piece = _read(self.fd)
            if not piece:
                break
            seen += piece
        code = self.process.wait(DEADLINE)
        return code, seen.decode("utf-8", "replace").replace("\r\n", "\n")

    def close(self) -> None:
        """End the command if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)


@contextlib.contextmanager
def terminal(*args: str, **options: Any) -> Iterator[Terminal]:
    """Yield a command on a pseudo-terminal; end it with the block."""
    opened = Terminal(*args, **options)
    try:
        yield opened
    finally:
        opened.close()


def descendants(pid: int) -> list[int]:
    """Return descriptors (pidfds) of all descendants of a process."""
    found: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        children = Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        for child in map(int, children):
            found += [os.pidfd_open(child), *descendants(child)]
    return found


def all_end(pidfds: list[int]) -> bool:
    """Return whether all of these processes end before the deadline."""
    end = time.monotonic() + DEADLINE
    ended = [bool(select.select([pidfd], [], [], max(end - time.monotonic(), 0))[0]) for pidfd in pidfds]
    for pidfd in pidfds:
        os.close(pidfd)
    return all(ended)
