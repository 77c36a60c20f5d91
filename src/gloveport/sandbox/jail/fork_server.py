"""The fork server: the process that starts guests. It has an empty environment, one thread, no secret, one socket.

    host ── launch, spawn + (stdin, stderr), limit ──► fork server ── clone ──► guest
    host ◄── ready, spawned + (pidfd), failed, exited ──┘

It ends when the host ends, and its guests end with it.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from errno import ENOSYS, EOPNOTSUPP, EPERM
from typing import Any

from gloveport.sandbox.jail import channel, filesystem, landlock, limits, namespaces, privileges, probes
from gloveport.sandbox.jail.confinement import (
    OPTIONAL_LAYERS,
    TOO_LATE,
    Confinement,
    SpawnError,
    StartedGuest,
    Step,
    failure_text,
    make_exec_watch,
    make_guest_filter,
)
from gloveport.sandbox.jail.filesystem import LaunchSpec
from gloveport.sandbox.jail.namespaces import NetworkPool, NoNetworkPool
from gloveport.sandbox.jail.strength import JailReport, assess, holds_native_code
from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.jail.zygote_client import StartingGuest, ZygoteClient

_SPAWN_SECONDS = 30.0

_NOTIF_RECV, _NOTIF_SEND = 0xC0502100, 0xC0182101
_NOTIF_BYTES = 80
_NOTIF_CONTINUE = 1


def main() -> None:
    """Start guests for the host, whose socket is descriptor 0, until the host ends."""
    control = socket.socket(fileno=os.dup(0))
    control.set_inheritable(False)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for name in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(name, _ignore_signal)  # a handler, not SIG_IGN: exec resets a handler, a guest would inherit SIG_IGN
    os.umask(0o022)
    os.chdir("/")
    launch = _receive_launch(control)
    host = os.pidfd_open(int(launch["host"]))
    if os.getppid() != launch["host"]:
        sys.exit(0)
    spec = _spec(launch)
    try:
        confinement, report, guest_files, networks = prepare(spec)
        client = ZygoteClient(confinement, guest_files, networks, own_code=spec.own_code) if spec.zygote else None
        if client is not None and (spec.own_code or holds_native_code(report)):  # if not, the host refuses this jail
            client.open()
    except (OSError, ValueError, SpawnError) as error:
        _send(control, {"op": "refused", "message": str(error)})
        sys.exit(1)
    _send(control, {"op": "ready", "layers": asdict(report)["layers"], "directory": guest_files.directory})
    server = ForkServer(control, host, confinement, client, networks)
    try:
        server.serve()
    finally:
        server.end()
        guest_files.close()


def _ignore_signal(*_: object) -> None: ...


def _receive_launch(control: socket.socket) -> dict[str, Any]:
    message, fds = channel.receive(control)
    if message is None:  # the host has ended, and needed no guests
        sys.exit(0)
    with open(fds[0], "rb") as file:
        file.seek(0)
        return json.loads(file.read())


def _spec(launch: dict[str, Any]) -> LaunchSpec:
    files = {path: base64.b64decode(content) for path, content in launch["files"].items()}
    folders = {place: filesystem.Folder(**folder) for place, folder in launch["folders"].items()}
    return LaunchSpec(
        launch["executable"],
        tuple(launch["argv"]),
        launch["env"],
        files,
        folders,
        zygote=launch["zygote"],
        own_code=launch["own_code"],
        joins_threads=launch["joins_threads"],
        is_go=launch["is_go"],
        workspace=WorkspaceQuota(*launch["workspace"]) if launch["workspace"] else None,
    )


def prepare(
    spec: LaunchSpec,
) -> tuple[Confinement, JailReport, filesystem.GuestFilesystem, NetworkPool | NoNetworkPool]:
    """Probe the machine and confine this process as far as it allows.

    Returns what its guests need: their confinement, the report on it, their file system and their networks.
    """
    if MACHINE not in NUMBERS:
        raise ValueError(f"there is no table of system calls for {MACHINE}")
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    layout = filesystem.plan_root(spec)
    outer = probes.probe_namespaces(layout, proc)
    namespaced = all(layer.in_force for layer in outer)
    threads = limits.thread_limit(namespaces.outside_id(os.geteuid()), own_user=namespaced)
    if namespaced:
        filesystem.leave_host(layout, proc)
        guest_files, networks = filesystem.own_root_filesystem(spec, layout), NetworkPool(proc)
    elif spec.workspace is not None:
        why = next(f"{layer.name}: {layer.detail}; {layer.fix}" for layer in outer if not layer.in_force)
        raise ValueError(f"a session needs namespaces and a root of its own ({why})")
    else:
        # Guests of `own_code` read no file: the zygote has loaded everything, as the user of the host.
        folders = () if spec.own_code else spec.folders.values()
        unreadable = probes.find_unreadable([folder.path for folder in folders])
        if unreadable is not None:
            raise ValueError(
                f"{unreadable} can't be read by the user that guests run as: install it where all users can read, or allow "
                "user namespaces"
            )
        guest_files, networks = filesystem.host_filesystem(spec, layout), NoNetworkPool()
    shared = (namespaced or spec.zygote) and spec.workspace is None
    rules, ruleset = ((), _make_ruleset(guest_files.rules)) if shared else (guest_files.rules, None)
    confinement = Confinement(
        holds=OPTIONAL_LAYERS if namespaced else OPTIONAL_LAYERS - {"namespaces"},
        proc=proc,
        engine=guest_files.engine,
        argv=guest_files.argv,
        env=guest_files.env,
        files=rules,
        watch=make_exec_watch(),
        calls=make_guest_filter(
            may_exec=not spec.zygote,
            may_join=spec.joins_threads,
            has_workspace=spec.workspace is not None,
            is_go=spec.is_go,
        ),
        threads=threads,
        ruleset=ruleset,
        workspace=spec.workspace,
    )
    network = networks.take()
    addresses = probes.probe_fixed_addresses() if spec.zygote else []
    report = assess([*outer, *probes.probe_layers(confinement, network), *addresses])
    networks.give_back(network)
    holds = frozenset(layer.name for layer in report.layers if layer.in_force)
    return replace(confinement, holds=holds), report, guest_files, networks


def _make_ruleset(rules: tuple[tuple[int, int], ...]) -> int | None:
    """Create the Landlock ruleset that all guests share; None where Landlock is missing, which a probe reports."""
    try:
        return landlock.make_ruleset(rules)
    except OSError as error:
        if error.errno in (ENOSYS, EOPNOTSUPP, EPERM):
            return None
        raise
    finally:
        for fd, _ in rules:  # hundreds for some engines; more than a guest's RLIMIT_NOFILE
            os.close(fd)


class ForkServer:
    """Holds the guests of one host, by pidfd. Each pidfd stays open until the guest is reaped."""

    def __init__(
        self,
        control: socket.socket,
        host: int,
        confinement: Confinement,
        zygote_client: ZygoteClient | None,
        networks: NetworkPool | NoNetworkPool,
    ) -> None:
        self._control = control
        self._host = host
        self._confinement = confinement
        self._zygote_client = zygote_client
        self._networks = networks
        self._starting: dict[int, tuple[int, StartingGuest, int]] = {}  # sync socket → (guest number, guest, network)
        self._guests: dict[int, tuple[int, int, int]] = {}  # pidfd → (guest number, pid, network)
        self._poll = select.epoll()
        for fd in (control.fileno(), host):
            self._poll.register(fd, select.EPOLLIN)

    def serve(self) -> None:
        """Answer the host until it ends."""
        while True:
            ready = {fd for fd, _ in self._poll.poll(self._end_late_starts())}
            for fd in ready & self._starting.keys():
                self._go_on(fd)
            for fd in ready & self._guests.keys():
                self._reap(fd)
            if self._host in ready:
                return
            if self._control.fileno() in ready and not self._answer():
                return

    def end(self) -> None:
        """Kill and reap every guest."""
        for _, starting, _ in self._starting.values():
            starting.give_up()
        for fd in self._guests:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        for fd in list(self._guests):
            self._reap(fd)
        if self._zygote_client is not None:
            self._zygote_client.close()

    def _answer(self) -> bool:
        try:
            request, fds = channel.receive(self._control)
        except ConnectionError:
            return False
        if request is None:
            return False
        try:
            if request["op"] == "spawn":
                self._spawn(request["id"], fds, hasty=request["hasty"])
            elif request["op"] == "limit":
                self._limit(request, fds[0])
        finally:
            for fd in fds:
                os.close(fd)
        return True

    def _spawn(self, number: int, fds: list[int], *, hasty: bool) -> None:
        stdio, stderr = fds
        try:
            network = self._networks.take()
            try:
                if self._zygote_client is None:
                    self._started(number, spawn(self._confinement, network, stdio=stdio, stderr=stderr), network)
                    return
                starting = self._zygote_client.fork(network, stdio=stdio, stderr=stderr, hasty=hasty)
            except BaseException:
                self._networks.give_back(network)
                raise
        except (SpawnError, OSError) as error:
            self._failed(number, error)
            return
        self._starting[starting.sync.fileno()] = (number, starting, network)
        self._poll.register(starting.sync, select.EPOLLIN)

    def _go_on(self, sync: int) -> None:
        """Go on with a guest that has reported something, or whose time is over. Other guests start meanwhile."""
        number, starting, network = self._starting.pop(sync)
        self._poll.unregister(sync)
        try:
            started = starting.go_on()
        except (SpawnError, OSError) as error:
            self._networks.give_back(network)
            self._failed(number, error)
            return
        if started is None:
            self._starting[sync] = (number, starting, network)
            self._poll.register(sync, select.EPOLLIN)
        else:
            self._started(number, started, network)

    def _end_late_starts(self) -> float | None:
        """End the guests that have not started in time; return the seconds until another one may be late."""
        now = time.monotonic()
        for fd in [fd for fd, (_, starting, _) in self._starting.items() if starting.deadline <= now]:
            number, starting, network = self._starting.pop(fd)
            self._poll.unregister(fd)
            starting.give_up()
            self._networks.give_back(network)
            self._failed(number, SpawnError(TOO_LATE))
        return min((starting.deadline - now for _, starting, _ in self._starting.values()), default=None)

    def _started(self, number: int, started: StartedGuest, network: int) -> None:
        pid, pidfd, workspace = started
        self._guests[pidfd] = (number, pid, network)
        self._poll.register(pidfd, select.EPOLLIN)
        _send(
            self._control, {"op": "spawned", "id": number, "pid": pid}, (pidfd, *([] if workspace is None else [workspace]))
        )
        if workspace is not None:
            os.close(workspace)

    def _failed(self, number: int, error: Exception) -> None:
        _send(self._control, {"op": "failed", "id": number, "message": str(error)})

    def _limit(self, request: dict[str, Any], answer: int) -> None:
        """Set limits on behalf of a host that may not: root without CAP_SYS_RESOURCE, whose guests have another uid."""
        pid = next((pid for number, pid, _ in self._guests.values() if number == request["id"]), None)
        try:
            if pid is None:
                raise ProcessLookupError("the guest has ended")
            with _as_nobody():
                for name, value in request["limits"]:
                    resource.prlimit(pid, name, (value, value))
            os.write(answer, b"ok")
        except OSError as error:
            os.write(answer, str(error).encode())

    def _reap(self, pidfd: int) -> None:
        number, pid, network = self._guests.pop(pidfd)
        self._poll.unregister(pidfd)
        _, status, used = os.wait4(pid, 0)
        os.close(pidfd)
        self._networks.give_back(network)
        cpu = used.ru_utime + used.ru_stime
        _send(self._control, {"op": "exited", "id": number, "status": status, "cpu": cpu, "rss": used.ru_maxrss})


@contextlib.contextmanager
def _as_nobody() -> Iterator[None]:
    """Run a block with the uid and gid of the guests, which permits `prlimit` on them."""
    uids, gids = os.getresuid(), os.getresgid()
    os.setresgid(namespaces.NOBODY, namespaces.NOBODY, gids[2])
    os.setresuid(namespaces.NOBODY, namespaces.NOBODY, uids[2])
    try:
        yield
    finally:
        os.setresuid(*uids)
        os.setresgid(*gids)


def _send(control: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    with contextlib.suppress(ConnectionError):  # the host has ended: the next poll reports it
        channel.send(control, message, fds)


# ── one guest ──


def spawn(confinement: Confinement, network: int, *, stdio: int, stderr: int) -> StartedGuest:
    """Start a guest that has exec'd its engine inside the jail."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            steps = confinement.steps(network, theirs.fileno())  # before the clone: a child copies each page it writes
            pid, pidfd = confinement.clone()
            if pid == 0:
                ours.close()
                _become_guest(confinement, steps, theirs, stdio, stderr)
        workspace = None
        try:
            ours.settimeout(_SPAWN_SECONDS)
            workspace = confinement.take_workspace(ours)
            _await_guest(confinement, ours, pid)
        except BaseException as error:
            if workspace is not None:
                os.close(workspace)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pidfd)
            if isinstance(error, TimeoutError):
                raise SpawnError(TOO_LATE) from None
            raise
    return StartedGuest(pid, pidfd, workspace)


def _become_guest(confinement: Confinement, steps: list[Step], sync: socket.socket, stdio: int, stderr: int) -> None:
    """Run the child up to its exec; report a failure to the parent. Never returns."""
    layer = "start"
    try:
        for target, source in ((0, stdio), (1, stdio), (2, stderr)):
            os.dup2(source, target)
        for layer, step in steps:  # noqa: B007  `layer` is used after the loop when a step fails
            step()
        privileges.close_descriptors_on_exec()
        layer = "single exec"
        if layer in confinement.holds:
            listener = confinement.watch.install_with_listener()
            socket.send_fds(sync, [b"ready"], [listener])
            os.close(listener)
        else:
            sync.send(b"ready")
            # PDEATHSIG is set by now. The parent's answer proves that it did not die before that.
            if not sync.recv(1):
                os._exit(1)
        layer = "seccomp"
        if layer in confinement.holds:
            confinement.restrict_calls()
        layer = "exec"
        os.execve(confinement.engine, confinement.argv, dict(confinement.env))
    except BaseException as error:  # noqa: BLE001  the outer edge of the child: report any failure to the parent
        os.write(sync.fileno(), f"{layer}: {error}".encode()[:1000])
    finally:
        os._exit(127)


def _await_guest(confinement: Confinement, sync: socket.socket, pid: int) -> None:
    """Wait until the child has exec'd; SpawnError with the child's message when it fails."""
    sync.settimeout(_SPAWN_SECONDS)
    try:
        word, listeners = channel.receive_bytes(sync)
        if word != b"ready":
            raise SpawnError(failure_text(word) or "the guest died before it was jailed")
        execs = True
        if "single exec" in confinement.holds:
            execs = _let_exec_once(listeners[0], pid)
        else:
            sync.send(b"g")
        word = sync.recv(1024)  # empty on success: the exec closes the child's end
    except TimeoutError:
        raise SpawnError(TOO_LATE) from None
    if word or not execs:
        raise SpawnError(failure_text(word) or "the guest died before it was jailed")


def _let_exec_once(listener: int, pid: int) -> bool:
    """Allow the one exec that the child is about to make; return false if the child dies first.

    After the listener is closed, every later exec fails with ENOSYS.
    """
    try:
        waiter = select.poll()
        waiter.register(listener, select.POLLIN)
        events = waiter.poll(_SPAWN_SECONDS * 1000)
        if not events:
            raise SpawnError(TOO_LATE)
        if not events[0][1] & select.POLLIN:
            return False
        notice = bytearray(_NOTIF_BYTES)
        fcntl.ioctl(listener, _NOTIF_RECV, notice)
        number, caller = struct.unpack_from("=QI", notice)
        if caller != pid:
            raise SpawnError("another process answered for the guest")
        fcntl.ioctl(listener, _NOTIF_SEND, struct.pack("=QqiI", number, 0, 0, _NOTIF_CONTINUE))
        return True
    finally:
        os.close(listener)
