"""The host's side of the jail: a `Launcher` runs a fork server, and through it starts jailed guests, one by one."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gloveport.errors import SandboxError
from gloveport.sandbox.guest import Exit, Guest
from gloveport.sandbox.jail import channel
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.jail.strength import REQUIRED_LAYERS, JailReport, Layer, assess, holds_native_code
from gloveport.types import Strength

_START_SECONDS = 30.0
_SPAWN_SECONDS = 30.0
_END_SECONDS = 10.0
_RANK: Mapping[Strength, int] = {"none": 0, "kernel": 1, "full": 2}
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_SERVER = f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); from gloveport.sandbox.jail.fork_server import main; main()"


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launcher starts, again and again.

    `files` are laid into the jail (guest path → content). In a jail of `kernel` strength they lie elsewhere, and
    arguments and environment values that begin with the path of one are changed to match. Nothing in a jail can be
    written: Deno wants DENO_EMIT_CACHE_MODE=disable for that, or else spends 150 ms in vain on its first TypeScript.

    `folders` of the host are to be seen in the jail (guest path → folder), where they are in one of `kernel` strength.
    With `zygote` the engine is exec'd once and forks guests that are ready to run, as `gloveport.sandbox.jail.zygote` does;
    it needs a jail that holds native code: of strength `full`, or `kernel` with the layer `signal scope`.

    `first_input` is what each guest finds on its standard input before all else, `idle_input` what a pool then sends to one
    that nobody waits for yet: it has time to make the run quicker that it will get.
    """

    executable: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Folder] = field(default_factory=dict)
    zygote: bool = False
    first_input: bytes = b""
    idle_input: bytes = b""


@dataclass(frozen=True, slots=True)
class _PendingSpawn:
    """A guest that was asked for: our ends of its channels, and who waits for it."""

    socket: socket.socket
    stderr: int
    guest: asyncio.Future[Guest]

    def cancel(self) -> None:
        self.socket.close()
        os.close(self.stderr)


class Launcher:
    """One fork server and the guests that it has started; used from one event loop."""

    report: JailReport

    def __init__(self, launch: Launch, *, minimum: Strength = "kernel") -> None:
        self._launch = launch
        self._minimum: Strength = minimum
        self._numbers = itertools.count(1)
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None  # None before the start and after the end
        self._server_stderr = -1  # a file in memory that is the server's stderr
        self._directory: str | None = None  # on the host, and the server's to remove; ours if the server was killed
        self._pending: dict[int, _PendingSpawn] = {}
        self._guests: dict[int, Guest] = {}

    async def start(self) -> JailReport:
        """What the jail here consists of, once the fork server stands; SandboxError if it is less than the minimum."""
        if self._server is not None:
            raise SandboxError("the launcher was started before", code="closed")
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[JailReport] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._sending = asyncio.Lock()
        try:
            self._exec_server()
            await self._send({"op": "launch"}, [_in_memory(_describe(self._launch))])
            async with asyncio.timeout(_START_SECONDS):
                self.report = await self._ready
            self._check_strength()
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise SandboxError("the fork server did not start in time") from None
            raise
        return self.report

    async def spawn(self) -> Guest:
        """A new guest: in its jail, its engine exec'd, or forked ready to run."""
        if self._control is None:
            raise SandboxError("the launcher is not running", code="closed", hint="start it; once closed, make another")
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        stderr, stderr_writer = os.pipe()
        os.set_blocking(stderr, False)
        pending = self._pending[number] = _PendingSpawn(ours, stderr, self._loop.create_future())
        try:
            await self._send({"op": "spawn", "id": number}, [theirs.detach(), stderr_writer])
            async with asyncio.timeout(_SPAWN_SECONDS):
                guest = await pending.guest
                if self._launch.first_input:
                    with contextlib.suppress(ConnectionError):  # it has died: who listens to it will hear
                        await self._loop.sock_sendall(guest.socket, self._launch.first_input)
                return guest
        except BaseException as error:
            if self._pending.pop(number, None):
                pending.cancel()
            elif pending.guest.done() and not pending.guest.cancelled() and not pending.guest.exception():
                pending.guest.result().close()  # it came too late, or takes nothing in
            if isinstance(error, TimeoutError):
                raise SandboxError("a guest did not start in time", code="sandbox-crashed") from None
            raise

    async def close(self) -> None:
        """Kill all guests and end the fork server; when this returns, nothing of them is left."""
        if self._server is None:
            return
        for guest in self._guests.values():
            guest.kill()
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self._server.kill()  # its guests die with it
            await self._gone

    @property
    def alive(self) -> bool:
        """True from the start of the fork server until it ends."""
        return self._control is not None

    def abandon(self) -> None:
        """Kill the fork server, and with it its guests, when the event loop is no more; closes every descriptor."""
        if self._server is None:
            return
        self._server.kill()
        self._server.wait()
        for guest in self._guests.values():
            guest.close()
        self._guests.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
            os.close(self._server_pidfd)
            os.close(self._server_stderr)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    # ── the server process ──

    def _exec_server(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server_stderr = _in_memory(b"")
        try:
            self._server = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SERVER],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=server_stderr,
                env={},
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(server_stderr)
            raise SandboxError(f"the fork server could not be started: {error}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        self._control, self._server_stderr = ours, server_stderr
        self._loop.add_reader(ours.fileno(), self._receive)
        self._server_pidfd = os.pidfd_open(self._server.pid)
        self._loop.add_reader(self._server_pidfd, self._server_ended)

    def _server_ended(self) -> None:
        """The server is dead, and so are its guests, or dying: by the kernel's promise, not by the server's."""
        assert self._server is not None
        self._loop.remove_reader(self._server_pidfd)
        os.close(self._server_pidfd)
        self._server.wait()
        while self._receive():
            pass
        self._hang_up()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        said = _read_tail(self._server_stderr)
        os.close(self._server_stderr)
        problem = SandboxError("the fork server died", code="sandbox-crashed", hint=said or None)
        if not self._ready.done():
            self._ready.set_exception(problem)
            self._ready.exception()
        for number in list(self._pending):
            self._refuse(number, problem)
        for guest in self._guests.values():
            guest.on_server_exit()
        self._guests.clear()
        self._gone.set_result(None)

    def _hang_up(self) -> None:
        if self._control is not None:
            self._loop.remove_reader(self._control.fileno())
            self._control.close()
            self._control = None

    def _check_strength(self) -> None:
        wanted, needed = f"`{self._minimum}` is required", REQUIRED_LAYERS[self._minimum]
        if _RANK[self.report.strength] >= _RANK[self._minimum]:
            if not self._launch.zygote or holds_native_code(self.report):
                return
            wanted = "this engine requires `full`, or `kernel` with the layer `signal scope`"
            needed = REQUIRED_LAYERS["kernel"] | {"signal scope"}
        missing = [layer for layer in self.report.layers if not layer.in_force and layer.name in needed]
        fixes = dict.fromkeys(f"{layer.name}: {layer.fix}" for layer in missing)
        raise SandboxError(
            f"the sandbox here is of strength `{self.report.strength}`, and {wanted}: "
            + "; ".join(f"{layer.name}: {layer.detail}" for layer in missing),
            hint="; ".join([*fixes, "`gloveport doctor` shows every layer"]),
            data={"strength": self.report.strength, "missing": [layer.name for layer in missing]},
        )

    # ── messages ──

    async def _send(self, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Send a message and let go of the descriptors that go with it."""
        try:
            async with self._sending:
                while not self._try_send(message, fds):
                    await self._until_writable()
        finally:
            for fd in fds:
                os.close(fd)

    def _try_send(self, message: Mapping[str, Any], fds: Sequence[int]) -> bool:
        if self._control is None:
            raise SandboxError("the fork server died", code="sandbox-crashed")
        try:
            channel.send(self._control, message, fds)
        except BlockingIOError:
            return False
        except ConnectionError:
            raise SandboxError("the fork server died", code="sandbox-crashed") from None
        return True

    async def _until_writable(self) -> None:
        assert self._control is not None
        fd, writable = self._control.fileno(), self._loop.create_future()
        self._loop.add_writer(fd, lambda: writable.done() or writable.set_result(None))
        try:
            await asyncio.wait((writable, self._gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._control is not None:
                self._loop.remove_writer(fd)

    def _receive(self) -> bool:
        """Handle one message; false when there is none."""
        if self._control is None:
            return False
        try:
            message, fds = channel.receive(self._control)
        except BlockingIOError:
            return False
        except ConnectionError:
            message, fds = None, []
        if message is None:
            self._hang_up()
            return False
        match message["op"]:
            case "ready":
                self._directory = message["directory"]
                self._answer_start(assess(Layer(**layer) for layer in message["layers"]))
            case "refused":
                self._answer_start(SandboxError(f"no jail can be made: {message['message']}"))
            case "spawned":
                self._deliver(message["id"], message["pid"], fds[0])
            case "failed":
                self._refuse(message["id"], SandboxError(message["message"], code="sandbox-crashed"))
            case "exited":
                guest = self._guests.pop(message["id"], None)
                if guest is not None:
                    guest.on_exit(Exit.from_status(message["status"], message["cpu"], message["rss"]))
        return True

    def _answer_start(self, answer: JailReport | SandboxError) -> None:
        if self._ready.done():
            return
        if isinstance(answer, SandboxError):
            self._ready.set_exception(answer)
        else:
            self._ready.set_result(answer)

    def _deliver(self, number: int, pid: int, pidfd: int) -> None:
        pending = self._pending.pop(number, None)
        if pending is None:  # nobody waits for it any more
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
            return
        guest = self._guests[number] = Guest(
            pid=pid,
            pidfd=pidfd,
            channel=pending.socket,
            stderr=pending.stderr,
            exit=self._loop.create_future(),
            limit_by_server=lambda limits: self._limit(number, limits),
        )
        if pending.guest.done():
            guest.close()
        else:
            pending.guest.set_result(guest)

    def _refuse(self, number: int, error: SandboxError) -> None:
        pending = self._pending.pop(number, None)
        if pending is not None:
            pending.cancel()
            if not pending.guest.done():
                pending.guest.set_exception(error)

    def _limit(self, number: int, limits: Sequence[tuple[int, int]]) -> None:
        """Have the fork server set limits that this process may not; done, or raised, when this returns."""
        reader, writer = os.pipe()
        try:
            if not self._try_send({"op": "limit", "id": number, "limits": limits}, [writer]):
                raise SandboxError("the fork server is not listening", code="sandbox-crashed")
            os.close(writer)
            writer = -1
            waiter = select.poll()
            waiter.register(reader, select.POLLIN)
            answer = os.read(reader, 1000) if waiter.poll(_END_SECONDS * 1000) else b""
            if answer != b"ok":
                raise SandboxError(f"the guest's limits could not be set: {answer.decode()}", code="sandbox-crashed")
        finally:
            for fd in (reader, writer):
                if fd >= 0:
                    os.close(fd)


def _describe(launch: Launch) -> bytes:
    return json.dumps(
        {
            "host": os.getpid(),
            "executable": launch.executable,
            "argv": launch.argv,
            "env": dict(launch.env),
            "folders": {place: asdict(folder) for place, folder in launch.folders.items()},
            "zygote": launch.zygote,
            "files": {path: base64.b64encode(content).decode() for path, content in launch.files.items()},
        }
    ).encode()


def _in_memory(content: bytes) -> int:
    fd = os.memfd_create("gloveport", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd


def _read_tail(fd: int) -> str:
    size = os.fstat(fd).st_size
    return os.pread(fd, 2000, max(0, size - 2000)).decode(errors="replace").strip()
