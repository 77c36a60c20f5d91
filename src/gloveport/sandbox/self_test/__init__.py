"""The self-test of the jail: an engine with all its permissions tries to break out, and the host watches its canaries.

This file runs in the host process; `attempts.js` runs in the guest. The host also makes every attempt itself, outside
the jail, where it must succeed: a check that can't fail proves nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.resources
import json
import os
import re
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gloveport.errors import SandboxError
from gloveport.sandbox.engines.deno.engine import ENGINE, ENVIRONMENT
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.guest import Guest
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.launcher import Launch, Launcher

SELF_TEST_SECONDS = 30.0
MAX_REPORT_BYTES = 256 * 1024
CANARY_VARIABLE = "GLOVEPORT_SELF_TEST_CANARY"
_SCRIPT = "/guest/attempts.js"

ATTEMPTS: Mapping[str, str] = {
    "tcp": "connect to a TCP port of the host",
    "udp": "send a UDP datagram to the host",
    "dns": "ask a name server",
    "unix-socket": "connect to a UNIX socket of the host",
    "canary-file": "read a file of the host",
    "system-file": "read /etc/passwd and the like",
    "proc-environ": "read the environment of other processes",
    "list-root": "list directories",
    "write-file": "write a file",
    "environment": "find the host's environment",
    "signal": "send a signal to the host",
    "spawn": "start a program",
    "fork": "fork, by a raw system call",
    "execve": "exec, by a raw system call",
}


@dataclass(frozen=True, slots=True)
class EscapeAttempt:
    """One way out that was tried. `control`: it works outside the jail. `reported`: the guest reported how it ended."""

    name: str
    what: str
    escaped: bool
    detail: str
    control: bool = True
    reported: bool = True

    @property
    def held(self) -> bool:
        """Whether the attempt was made, could have worked, and was refused."""
        return self.reported and self.control and not self.escaped


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """The layers of the jail, and how each attempt to leave it ended."""

    report: JailReport
    attempts: tuple[EscapeAttempt, ...]

    @property
    def held(self) -> bool:
        """Whether every attempt was made and none got out."""
        return all(attempt.held for attempt in self.attempts)


async def run_self_test() -> SelfTestResult:
    """Try to break out of a sandbox on this machine; SandboxError when no sandbox can be started."""
    with Canaries() as canaries:
        controls = canaries.controls()
        launcher = Launcher(self_test_launch(canaries.plan()), minimum="none")
        report = await launcher.start()
        try:
            reports = await _listen(await launcher.spawn())
        finally:
            await launcher.close()
        tripped = canaries.tripped()
    attempts = {name: _judge(name, reports.get(name), name in tripped, controls) for name in ATTEMPTS}
    if report.strength != "none" and not report.layer("single exec").in_force:
        attempts["execve"] = _with_more_execs(attempts["execve"])
    return SelfTestResult(report, tuple(attempts.values()))


def _with_more_execs(attempt: EscapeAttempt) -> EscapeAttempt:
    """Accept a missing report on execve: the guest exec'd the engine itself, and Landlock allows no other program."""
    if attempt.reported or attempt.escaped:
        return attempt
    return replace(attempt, reported=True, detail="except for the engine itself, again in the same jail")


def self_test_launch(plan: Mapping[str, Any]) -> Launch:
    """Return the launch of an ordinary engine, but with every permission, and with the attempts as its program."""
    ordinary = ENGINE.launch(ProcessOptions("deno"))
    script = importlib.resources.files(__name__) / "attempts.js"
    engines = [f"/engine/{os.path.basename(ordinary.executable)}", ordinary.executable]
    words = json.dumps({**plan, "engines": engines, "environment": sorted(ENVIRONMENT)})
    return replace(
        ordinary,
        argv=("deno", "run", "-A", "--no-config", "--no-lock", "--no-remote", "--unstable-net", _SCRIPT, words),
        env={**ENVIRONMENT, "DENO_DIR": f"{_SCRIPT}/none"},
        files={_SCRIPT: script.read_bytes()},
        first_input=b"",
        idle_input=b"",
    )


async def _listen(guest: Guest) -> dict[str, dict[str, Any]]:
    """Return what the guest reported on each attempt, until it ended or its time was up."""
    loop = asyncio.get_running_loop()
    data = b""
    try:
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(SELF_TEST_SECONDS):
                while len(data) < MAX_REPORT_BYTES and (piece := await loop.sock_recv(guest.socket, 65536)):
                    data += piece
        stderr = _read_stderr(guest)
    finally:
        guest.kill()
        await guest.wait()
        guest.close()
    reports = dict(_lines(data))
    if not reports:
        raise SandboxError(f"the self-test did not start: {stderr or 'the engine wrote nothing'}", code="sandbox-crashed")
    return reports


def _lines(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError):
            match json.loads(line):
                case {"name": str(name), "escaped": bool(), "detail": str()} as report:
                    yield name, report


def _read_stderr(guest: Guest) -> str:
    with contextlib.suppress(OSError):
        return os.read(guest.stderr, 2000).decode("utf-8", "replace").strip()
    return ""


def _judge(name: str, reported: dict[str, Any] | None, tripped: bool, controls: Mapping[str, bool]) -> EscapeAttempt:
    control = controls.get(name, True)
    what = ATTEMPTS[name]
    if reported is None:
        return EscapeAttempt(name, what, tripped, "the guest did not report how it ended", control, reported=False)
    detail = "the host's canary tripped" if tripped and not reported["escaped"] else _readable_detail(reported["detail"])
    if not control:
        loopback = " (is the loopback interface up?)" if name in ("tcp", "udp", "dns") else ""
        detail = f"it does not work outside of the jail either{loopback}"
    return EscapeAttempt(name, what, reported["escaped"] or tripped, detail, control)


def _readable_detail(detail: str) -> str:
    detail = re.sub(r" \(os error \d+\)|: (readfile|readdir|writefile) '.*", "", detail)
    return re.sub(r"errno (\d+)", lambda found: os.strerror(int(found[1])), detail)


class Canaries:
    """Things on the host that a guest must not reach. Each one shows when something reaches it."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._canary = secrets.token_hex(16)
        self._signals = 0

    def __enter__(self) -> Canaries:
        # World-readable, world-writable, on loopback: only the jail protects them.
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="gloveport-self-test-")))
        self._folder.chmod(0o777)
        self._file = self._folder / "canary"
        self._file.write_text(self._canary)
        self._file.chmod(0o644)
        self._written = self._folder / "written"
        self._tcp = self._listener(socket.AF_INET, ("127.0.0.1", 0))
        self._unix = self._listener(socket.AF_UNIX, str(self._folder / "socket"))
        (self._folder / "socket").chmod(0o777)
        self._udp, self._dns = self._datagrams(), self._datagrams()
        os.environ[CANARY_VARIABLE] = self._canary
        self._open.callback(os.environ.pop, CANARY_VARIABLE, None)
        with contextlib.suppress(ValueError):  # only the main thread can handle signals; elsewhere the control fails
            before = signal.signal(signal.SIGURG, self._signalled)
            self._open.callback(signal.signal, signal.SIGURG, before)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listener(self, family: int, address: Any) -> socket.socket:
        own = self._open.enter_context(socket.socket(family, socket.SOCK_STREAM))
        own.bind(address)
        own.listen(16)
        own.setblocking(False)
        return own

    def _datagrams(self) -> socket.socket:
        own = self._open.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        own.bind(("127.0.0.1", 0))
        own.setblocking(False)
        return own

    def _signalled(self, *_: object) -> None:
        self._signals += 1

    def plan(self) -> dict[str, Any]:
        """Return what the guest needs to find the canaries."""
        return {
            "tcp_port": self._tcp.getsockname()[1],
            "udp_port": self._udp.getsockname()[1],
            "dns_port": self._dns.getsockname()[1],
            "unix_path": self._unix.getsockname(),
            "canary_path": str(self._file),
            "canary": self._canary,
            "write_path": str(self._written),
            "host_pid": os.getpid(),
        }

    def controls(self) -> dict[str, bool]:
        """Return which attempts succeed from the host, and reset the canaries."""
        for touch in (self._touch_itself, self._touch_datagrams, self._touch_listeners):
            with contextlib.suppress(OSError):
                touch()
        seen = self.tripped()
        self._written.unlink(missing_ok=True)
        self._signals = 0
        return {
            **{name: name in seen for name in ("tcp", "udp", "dns", "unix-socket", "write-file", "signal")},
            "canary-file": _readable(self._file),
            "system-file": _readable(Path("/etc/passwd")),
            "proc-environ": self._canary_variable_is_set() and _readable(Path(f"/proc/{os.getpid()}/environ")),
            "list-root": bool(os.listdir("/")),
            "environment": self._canary_variable_is_set(),
        }

    def _touch_itself(self) -> None:
        self._written.write_text("control")
        os.kill(os.getpid(), signal.SIGURG)

    def _touch_datagrams(self) -> None:
        for own in (self._udp, self._dns):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"control", own.getsockname())

    def _touch_listeners(self) -> None:
        for own in (self._unix, self._tcp):
            with socket.socket(own.family, socket.SOCK_STREAM) as caller:
                caller.settimeout(2)
                caller.connect(own.getsockname())

    def _canary_variable_is_set(self) -> bool:
        return os.environ.get(CANARY_VARIABLE) == self._canary

    def tripped(self) -> set[str]:
        """Return the names of the attempts that reached their canary since the last call."""
        found = {name for name, own in (("tcp", self._tcp), ("unix-socket", self._unix)) if _accepted(own)}
        found |= {name for name, own in (("udp", self._udp), ("dns", self._dns)) if _received(own)}
        if self._written.exists():
            found.add("write-file")
        if self._signals:
            found.add("signal")
        return found


def _readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def _accepted(listener: socket.socket) -> bool:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            connection, _ = listener.accept()
            connection.close()
            count += 1
    return count > 0


def _received(own: socket.socket) -> bool:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            own.recv(4096)
            count += 1
    return count > 0
