"""The host's side of the jail: a `Launcher` runs a fork server and asks it for jailed guests, one at a time."""

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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from gloveport.errors import SandboxError
from gloveport.sandbox.guest import Exit, Guest
from gloveport.sandbox.jail import channel
from gloveport.sandbox.jail.filesystem import Folder
from gloveport.sandbox.jail.strength import REQUIRED_LAYERS, JailReport, Layer, assess, holds_native_code
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.server_process import ServerProcess, take_server
from gloveport.types import Strength

_START_SECONDS = 60.0
_SPAWN_SECONDS = 60.0
_END_SECONDS = 10.0
# While so many guests are starting, each core is busy: a guest then prefaults no pages, which would cost more in all.
CORES = os.cpu_count() or 1
STRENGTH_RANK: Mapping[Strength, int] = {"none": 0, "kernel": 1, "full": 2}


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launcher starts for each guest.

    `files` appear in the jail (guest path → content). At `kernel` strength they lie elsewhere on the host, and arguments
    and environment values that begin with the path of one are changed to match. Nothing in a jail is writable: Deno
    needs DENO_EMIT_CACHE_MODE=disable, or it wastes 150 ms on its first TypeScript.

    `folders` of the host appear in the jail (guest path → folder); at `kernel` strength they keep their host paths.
    With `zygote`, the engine is exec'd once and forks guests that are ready to run (see `jail.zygote`). That needs a jail
    that holds native code: strength `full`, or `kernel` with the layer `signal scope`. With `own_code`, the guests run
    only code of ours that the zygote has loaded, and any strength of at least the minimum will do.

    With `joins_threads`, the engine's main thread waits for another to end, by a shared futex (see `jail.seccomp`). With
    `is_go`, the executable is a program of Go, and may list folders. With
    `workspace`, each guest has a writable folder of its own, and only strength `full` will do.

    Each guest receives `first_input` on its standard input. A pool sends `idle_input` to a guest that no run waits for
    yet, so that it can use the time to speed up its run.
    """

    executable: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    folders: Mapping[str, Folder] = field(default_factory=dict)
    zygote: bool = False
    own_code: bool = False
    joins_threads: bool = False
    is_go: bool = False
    workspace: WorkspaceQuota | None = None
    first_input: bytes = b""
    idle_input: bytes = b""

    def launcher(self, minimum: Strength) -> Launcher:
        """Return a launcher of such guests, which was not started yet."""
        return Launcher(self, minimum=minimum)


@dataclass(frozen=True, slots=True)
class _PendingSpawn:
    """A requested guest: our ends of its channels, and the future of the caller who waits for it."""

    socket: socket.socket
    stderr: int
    guest: asyncio.Future[Guest]

    def cancel(self) -> None:
        self.socket.close()
        os.close(self.stderr)


class Launcher:
    """One fork server and the guests that it has started. Use it from one event loop."""

    report: JailReport

    def __init__(self, launch: Launch, *, minimum: Strength = "kernel") -> None:
        self._launch = launch
        self._minimum: Strength = minimum
        self._numbers = itertools.count(1)
        self._server: ServerProcess | None = None
        self._control: socket.socket | None = None  # None before the start and after the end
        self._directory: str | None = None  # on the host; the server removes it, or we do if the server was killed
        self._pending: dict[int, _PendingSpawn] = {}
        self._guests: dict[int, Guest] = {}

    async def start(self) -> JailReport:
        """Start the fork server and return its report on the jail; SandboxError if the strength is below the minimum."""
        if self._server is not None:
            raise SandboxError("the launcher was started before", code="closed")
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[JailReport] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._sending = asyncio.Lock()
        try:
            self._start_server()
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
        """Start a guest and return it, jailed, with its engine exec'd or forked ready to run."""
        if self._control is None:
            raise SandboxError("the launcher is not running", code="closed", hint="start it; once closed, make another")
        number = next(self._numbers)
        hasty = len(self._pending) >= CORES
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        stderr, stderr_writer = os.pipe()
        os.set_blocking(stderr, False)
        pending = self._pending[number] = _PendingSpawn(ours, stderr, self._loop.create_future())
        try:
            await self._send({"op": "spawn", "id": number, "hasty": hasty}, [theirs.detach(), stderr_writer])
            async with asyncio.timeout(_SPAWN_SECONDS):
                guest = await pending.guest
                if self._launch.first_input:
                    with contextlib.suppress(ConnectionError):  # it has died: the reader of its socket will notice
                        await self._loop.sock_sendall(guest.socket, self._launch.first_input)
                return guest
        except BaseException as error:
            if self._pending.pop(number, None):
                pending.cancel()
            elif pending.guest.done() and not pending.guest.cancelled() and not pending.guest.exception():
                pending.guest.result().close()  # it started too late, or does not read its input
            if isinstance(error, TimeoutError):
                raise SandboxError("a guest did not start in time", code="sandbox-crashed") from None
            raise

    async def close(self) -> None:
        """Kill all guests and end the fork server; no process is left when this returns."""
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
            self._server.process.kill()  # its guests die with it
            await self._gone

    @property
    def alive(self) -> bool:
        """Whether the fork server is running."""
        return self._control is not None

    def abandon(self) -> None:
        """Kill the fork server and its guests and close every descriptor, after the event loop has closed."""
        if self._server is None:
            return
        self._server.process.kill()
        self._server.process.wait()
        for guest in self._guests.values():
            guest.close()
        self._guests.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
            os.close(self._server_pidfd)
            os.close(self._server.stderr)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    # ── the server process ──

    def _start_server(self) -> None:
        self._server = take_server()
        self._control = self._server.control
        self._loop.add_reader(self._control.fileno(), self._receive)
        self._server_pidfd = os.pidfd_open(self._server.process.pid)
        self._loop.add_reader(self._server_pidfd, self._server_ended)

    def _server_ended(self) -> None:
        """Clean up after the server. Its guests are dead or dying: the kernel guarantees that (PDEATHSIG)."""
        assert self._server is not None
        self._loop.remove_reader(self._server_pidfd)
        os.close(self._server_pidfd)
        self._server.process.wait()
        while self._receive():
            pass
        self._hang_up()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        stderr = _read_tail(self._server.stderr)
        os.close(self._server.stderr)
        problem = SandboxError("the fork server died", code="sandbox-crashed", hint=stderr or None)
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
        if STRENGTH_RANK[self.report.strength] >= STRENGTH_RANK[self._minimum]:
            if not self._launch.zygote or self._launch.own_code or holds_native_code(self.report):
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
        """Send a message with descriptors, and close our copies of them."""
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
        """Handle one message; return false when there is none."""
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
                self._deliver(message["id"], message["pid"], *fds)
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

    def _deliver(self, number: int, pid: int, pidfd: int, workspace: int | None = None) -> None:
        pending = self._pending.pop(number, None)
        if pending is None:  # no caller waits for it any more
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            for fd in (pidfd, *([] if workspace is None else [workspace])):
                os.close(fd)
            return
        guest = self._guests[number] = Guest(
            pid=pid,
            pidfd=pidfd,
            channel=pending.socket,
            stderr=pending.stderr,
            workspace=workspace,
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
        """Have the fork server set limits that this process may not set; blocks until they are set or raises."""
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
            "own_code": launch.own_code,
            "joins_threads": launch.joins_threads,
            "is_go": launch.is_go,
            "workspace": None if launch.workspace is None else astuple(launch.workspace),
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
