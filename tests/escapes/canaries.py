"""Things of the host that no program may reach. Each shows by itself that it was reached; what a program claims is no proof."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import json
import mmap
import os
import pty
import re
import resource
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from gloveport.sandbox.jail.elf import find_dependencies
from tests.escapes.calls import NUMBERS

VARIABLE = "GLOVEPORT_ESCAPE_CANARY"
MOST_THREADS = 128
MOST_MEMORY = 600 * 1024 * 1024
MOST_DESCRIPTORS = 256
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "cgroup", "mnt")
_ORDINARY = ("pipe", "socket", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "/dev/", "anon_inode:[pidfd]")
_BOUNDS = ("Max open files", "Max file size", "Max core file size", "Max processes", "Max locked memory", "Max nice")
_KEYCTL, _KEY_SEARCH, _KEY_UNLINK, _USER_KEYRING = {"x86_64": 250, "aarch64": 219}, 10, 9, -4
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_RESERVED_PAIRS = 512  # the first page, where tests/test_covert_channels.py waits and wakes
_libc = ctypes.CDLL(None, use_errno=True)


def token() -> str:
    """A random word that nobody can guess."""
    return f"cnry{secrets.token_hex(12)}"


class Posture(NamedTuple):
    """What the kernel says of a process that a hostile program may have changed."""

    facts: frozenset[str]
    threads: int
    peak: int

    def tripped(self, before: Posture) -> set[str]:
        """What is new since `before` and should not be."""
        found = {f"posture: {fact}" for fact in self.facts - before.facts}
        if self.threads - before.threads > MOST_THREADS:
            found.add("posture: threads")
        if self.peak - before.peak > MOST_MEMORY:
            found.add("posture: memory")
        return found


class SharedFutex:
    """Two words of libc, which every process maps: a thread waits for the first to be woken, and wakes the second.

    Either way bits pass between processes that share nothing but a file that neither can write. Other tests have canaries
    on the same file at the same time: all wait on even words and wake odd ones, so that no canary trips another.
    """

    def __init__(self) -> None:
        # As the loader names it: the jail has it under that name alone.
        libraries = find_dependencies(os.path.realpath(sys.executable)).libraries
        self.library = next(host for _, host in libraries if os.path.basename(host).startswith("libc."))
        content = Path(self.library).read_bytes()
        pairs = len(content) // 8 - _RESERVED_PAIRS
        self.places = [8 * (_RESERVED_PAIRS + secrets.randbelow(pairs)) + 4 * odd for odd in range(2)]
        self.values = [int.from_bytes(content[place : place + 4], "little", signed=True) for place in self.places]
        self.tripped: set[str] = set()
        self._ended = False
        self._mapped = _map(self.library, len(content)), len(content)
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        waited, woken = (self._mapped[0] + place for place in self.places)
        soon = struct.pack("@2l", 0, 10_000_000)
        while not self._ended:
            if _futex(waited, _FUTEX_WAIT, self.values[0], soon) == 0:
                self.tripped.add("futex: woken")
            if _futex(woken, _FUTEX_WAKE, 100, None) > 0:
                self.tripped.add("futex: waited for")

    def close(self) -> None:
        """End the thread."""
        self._ended = True
        self._thread.join()
        _libc.munmap(*map(ctypes.c_size_t, self._mapped))


def _map(path: str, size: int) -> int:
    _libc.mmap.restype = ctypes.c_size_t
    with open(path, "rb") as file:
        return _libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), ctypes.c_long(0))


def _futex(address: int, operation: int, value: int, timeout: bytes | None) -> int:
    return _libc.syscall(NUMBERS["futex"], ctypes.c_size_t(address), operation, value, timeout, None, 0)


class Canaries:
    """One set of canaries, for one program in one way; used inside `with`."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self.tokens: dict[str, str] = {}

    def _token(self, place: str) -> str:
        self.tokens[place] = token()
        return self.tokens[place]

    def __enter__(self) -> Canaries:
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="gloveport-escape-")))
        # Nothing but the sandbox may stand before them: readable and writable to everybody, on loopback.
        self._folder.chmod(0o777)
        (self._folder / "canary").write_text(self._token("file"))
        (self._folder / "canary.json").write_text(json.dumps({"default": self._token("json")}))
        (self._folder / "canary.js").write_text(f"export default {json.dumps(self._token('module'))};")
        (self._folder / "canary.py").write_text(f"word = {json.dumps(self._token('python module'))}")
        (self._folder / "link").symlink_to(self._token("link"))
        self._tcp = self._listener(socket.AF_INET, ("127.0.0.1", 0))
        self._unix = self._listener(socket.AF_UNIX, str(self._folder / "socket"))
        (self._folder / "socket").chmod(0o777)
        self._abstract_name = secrets.token_hex(8)
        self._abstract = self._listener(socket.AF_UNIX, f"\0{self._abstract_name}")
        self._udp = self._open.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        self._udp.setblocking(False)
        self._start_victim()
        self._start_terminal()
        self._futex = SharedFutex()
        self._open.callback(self._futex.close)
        self._key = f"gloveport-{secrets.token_hex(8)}"
        self._shm = secrets.randbelow(2**30) + 1
        self._files = set(os.listdir(self._folder))
        self.inherited = os.memfd_create("canary", 0)
        self._open.callback(os.close, self.inherited)
        os.write(self.inherited, self._token("descriptor").encode())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listener(self, family: int, address: Any) -> socket.socket:
        own = self._open.enter_context(socket.socket(family, socket.SOCK_STREAM))
        own.bind(address)
        own.listen(16)
        own.setblocking(False)
        return own

    def _start_victim(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])  # it keeps what it is sent for us to see
        self._victim = subprocess.Popen(
            [*_apart(), "sleep", "1000"], env={"VICTIM": self._token("victim"), "PATH": os.environ.get("PATH", "")}
        )
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGURG])
        self._pidfd = os.pidfd_open(self._victim.pid)

        def bury() -> None:
            self._victim.kill()
            self._victim.wait()
            os.close(self._pidfd)

        self._open.callback(bury)
        while "sleep" not in Path(f"/proc/{self._victim.pid}/comm").read_text():  # it execs at once
            pass
        self._standing = self._victims_standing()

    def listen_for_urgent(self, channel: socket.socket) -> None:
        """Have the victim told when urgent data comes on a channel of ours, as the kernel tells a socket's owner."""
        fcntl.fcntl(channel, fcntl.F_SETOWN, self._victim.pid)

    def _victims_clock(self) -> str:
        """Its processor time, to the nanosecond: it sleeps, so that this never changes, and nobody can guess it."""
        return str(time.clock_gettime_ns((~self._victim.pid << 3) | 2))

    def _start_terminal(self) -> None:
        self._master, self._slave = pty.openpty()
        self._open.callback(os.close, self._master)
        self._open.callback(os.close, self._slave)
        mode = termios.tcgetattr(self._slave)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._slave, termios.TCSANOW, mode)

    def _victims_standing(self) -> tuple[Any, ...]:
        pid = self._victim.pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        return os.sched_getaffinity(pid), os.getpriority(os.PRIO_PROCESS, pid), limit, os.sched_getscheduler(pid)

    def _victim_is_dead(self) -> bool:
        """Whether it was ended. A signal wakes it at once, but on a busy machine it takes a while to die of it."""
        while not select.select([self._pidfd], [], [], 0)[0]:
            state = Path(f"/proc/{self._victim.pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "RD":
                return False
            select.select([self._pidfd], [], [], 0.01)
        return True

    def input(self) -> dict[str, Any]:
        """Where everything is, for the program to try."""
        return {
            "file": str(self._folder / "canary"),
            "json": str(self._folder / "canary.json"),
            "module": str(self._folder / "canary.js"),
            "python": str(self._folder / "canary.py"),
            "link": str(self._folder / "link"),
            "directory": str(self._folder),
            "write": str(self._folder / "written"),
            "env": VARIABLE,
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": self._unix.getsockname(),
            "abstract": self._abstract_name,
            "pid": self._victim.pid,
            "tty": os.ttyname(self._slave),
            "key": self._key,
            "shm": self._shm,
            "library": self._futex.library,
            "futexes": self._futex.places,
            "values": self._futex.values,
            "name": f"gloveport-{self._shm}",
            "prefix": "cnry",
            "round": 1,
        }

    def answer(self) -> None:
        """Answer who has connected; called while the program runs."""
        for name, own in (("tcp", self._tcp), ("unix", self._unix), ("abstract", self._abstract)):
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = own.accept()
                    self.arrived.add(name)
                    self._open.enter_context(connection)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        with contextlib.suppress(OSError):
            while True:
                _, sender = self._udp.recvfrom(4096)
                self.arrived.add("udp")
                self._udp.sendto(b"ok", sender)

    @property
    def arrived(self) -> set[str]:
        """Which sockets somebody has reached."""
        return self.__dict__.setdefault("_arrived", set())

    def sockets(self) -> tuple[socket.socket, ...]:
        """What to watch for arrivals."""
        return self._tcp, self._unix, self._abstract, self._udp

    def tripped(self, text: str) -> set[str]:
        """What was reached, by the canaries' own account; `text` is everything that came out of the sandbox."""
        self.answer()
        found = {f"token: {place}" for place, word in self.tokens.items() if word in text}
        found |= {f"arrival: {name}" for name in self.arrived}
        new = set(os.listdir(self._folder)) - self._files
        if new:
            found.add("written")
        if self._victim_is_dead():
            found.add("victim: dead")
        else:
            if self._victims_standing() != self._standing:
                found.add("victim: changed")
            clock = self._victims_clock()
            # A shorter number is anywhere, and so is one that is a part of another: of a duration, of an id.
            if len(clock) > 5 and re.search(rf"(?<![\w.]){clock}(?!\w)", text):
                found.add("victim: clock")
            if _pending(self._victim.pid) & 1 << (signal.SIGURG - 1):
                found.add("urgent data")
        (waiting,) = struct.unpack("i", fcntl.ioctl(self._slave, termios.FIONREAD, b"\0\0\0\0"))
        if waiting:
            found.add("terminal")
        return found | self._futex.tripped | self._kernel_objects()

    def _kernel_objects(self) -> set[str]:
        found: set[str] = set()
        with contextlib.suppress(OSError):
            if self._key in Path("/proc/keys").read_text():
                found.add("key")
                number = _KEYCTL[os.uname().machine]
                names = ctypes.c_char_p(b"user"), ctypes.c_char_p(self._key.encode())
                key = _libc.syscall(number, _KEY_SEARCH, _USER_KEYRING, *names, 0)
                _libc.syscall(number, _KEY_UNLINK, key, _USER_KEYRING)
        for kind, remove in (
            ("shm", lambda number: _libc.shmctl(number, 0, None)),
            ("sem", lambda number: _libc.semctl(number, 0, 0)),
            ("msg", lambda number: _libc.msgctl(number, 0, None)),
        ):
            with contextlib.suppress(OSError):
                for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]:
                    if int(line.split()[0]) == self._shm:
                        found.add(f"System V {kind}")
                        remove(int(line.split()[1]))
        for place in (f"/dev/shm/gloveport-{self._shm}", f"/dev/shm/sem.gloveport-{self._shm}"):
            with contextlib.suppress(OSError):
                os.unlink(place)
                found.add("named shared memory")
        return found

    def posture(self, pid: int) -> Posture:
        """What a process is now, as the host sees it."""
        facts: set[str] = set()
        place = Path(f"/proc/{pid}")
        with contextlib.suppress(OSError):
            for task in os.listdir(place / "task"):
                for kind in _NAMESPACES:
                    facts.add(f"{kind} namespace {os.readlink(place / 'task' / task / 'ns' / kind)}")
                if str(self._folder) in (place / "task" / task / "mountinfo").read_text():
                    facts.add("mount")
                facts.add(f"root {os.readlink(place / 'task' / task / 'root')}")
            facts |= _descriptors(place) | _sockets(place) | _standing(place) | _memory(place)
            children = (place / "task" / str(pid) / "children").read_text().split()
            facts |= {f"child {child}" for child in children}
        return Posture(frozenset(facts), *_size(place))


@functools.cache
def _apart() -> tuple[str, ...]:
    """What starts a process in a namespace of its own that another could join, where that can be had."""
    path = shutil.which("unshare")
    if path is None or subprocess.run([path, "--uts", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return ()
    return path, "--uts"


def _standing(place: Path) -> set[str]:
    """What a process may use up, and how much the kernel favours it."""
    rows = (place / "limits").read_text().splitlines()
    limits = {f"limit {row}" for row in rows if row.startswith(_BOUNDS)}
    nice = (place / "stat").read_text().rpartition(")")[2].split()[16]
    return {*limits, f"nice {nice}", f"oom score {(place / 'oom_score_adj').read_text().strip()}"}


def _size(place: Path) -> tuple[int, int]:
    """How many threads a process has, and what it has held at most; any thread of it tells, if the first has ended."""
    with contextlib.suppress(OSError):  # it is gone
        for task in (place / "task").iterdir():
            told = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            if "VmHWM" in told:
                return int(told["Threads"]), sum(int(told[name].split()[0]) * 1024 for name in ("VmHWM", "VmPTE"))
    return 0, 0


def _pending(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("ShdPnd:\t")[2].split()[0], 16)


def _memory(place: Path) -> set[str]:
    """Kinds of memory that are shared beyond the process, or are in none of its sizes."""
    flags = {
        flag for row in (place / "smaps").read_text().splitlines() if row.startswith("VmFlags:") for flag in row.split()
    }
    return {f"memory {kind}" for flag, kind in (("mg", "merged with others'"), ("ht", "of huge pages")) if flag in flags}


def _descriptors(place: Path) -> set[str]:
    names = os.listdir(place / "fd")
    found = {"descriptors"} if len(names) > MOST_DESCRIPTORS else set[str]()
    for name in names:
        with contextlib.suppress(OSError):
            target = os.readlink(place / "fd" / name)
            if target.startswith(("anon_inode", "/memfd:")) and not target.startswith(_ORDINARY):
                found.add(f"descriptor {target.partition(' ')[0]}")
    return found


def _sockets(place: Path) -> set[str]:
    found: set[str] = set()
    for kind, column in (("netlink", 9), ("raw", 9), ("packet", 8), ("icmp", 9)):
        with contextlib.suppress(OSError):
            rows = (place / "net" / kind).read_text().splitlines()[1:]
            inodes = {row.split()[column] for row in rows if len(row.split()) > column}
            held = {os.readlink(fd) for fd in (place / "fd").iterdir()}
            if any(f"socket:[{inode}]" in held for inode in inodes):
                found.add(f"socket {kind}")
    with contextlib.suppress(OSError):
        local = {f"socket:[{row.split()[6]}]" for row in (place / "net" / "unix").read_text().splitlines()[1:]}
        held = {os.readlink(fd) for fd in (place / "fd").iterdir()}
        if any(target.startswith("socket:") and target not in local for target in held):
            found.add("socket of another family")
    return found
