"""A program with ctypes and all of Python that tries to break out: only the jail holds it.

It reads a line of JSON, {paths, folders, secret, victim, others, port, dns, socket, calls, …}, and prints one JSON line for
each attempt. Run as a script, outside of a jail, it is its own control.
"""

import contextlib
import ctypes
import json
import mmap
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

libc = ctypes.CDLL("libc.so.6", use_errno=True)
libc.syscall.restype = ctypes.c_long
kept: list[object] = []


def preload() -> None:
    """Do nothing: each import is an attempt, too."""


def report(name: str, won: bool, detail: object) -> None:
    """Print the result of an attempt."""
    os.write(1, json.dumps({"name": name, "won": won, "detail": str(detail)[:200]}).encode() + b"\n")


def attempt(name: str, action: Callable[[], object]) -> None:
    """Make an attempt and report it; a return value other than False means that it succeeded."""
    try:
        detail = action()
        report(name, detail is not False, detail)
    except BaseException as error:  # noqa: BLE001
        report(name, False, repr(error))


def syscall(number: int, *args: Any) -> int:
    """Return the result of a raw system call, or a negative errno."""
    words = [ctypes.c_long(arg if isinstance(arg, int) else pointer(arg)) for arg in (*args, 0, 0, 0, 0, 0, 0)[:6]]
    result = libc.syscall(ctypes.c_long(number), *words)
    return -ctypes.get_errno() if result < 0 else result


def pointer(value: Any) -> int:
    """Return the address of a string or bytes."""
    made = ctypes.create_string_buffer(value.encode() if isinstance(value, str) else bytes(value))
    kept.append(made)
    return ctypes.addressof(made)


def main() -> None:
    """Try everything."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 65536)
    plan = json.loads(line)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit on file sizes is then an error
    attempt("alive: raw system calls", lambda: syscall(plan["getpid"]) > 0 and "yes")
    attempt("alive: native code made on the spot", native_code)
    surroundings(plan)
    files(plan)
    network(plan)
    processes(plan)
    for name, number, *args in plan["calls"]:
        attempt(name, lambda number=number, args=args, name=name: raw(name, number, args))
    attempt("kill a host process", lambda: os.kill(plan["victim"], signal.SIGKILL))
    report("end", False, "")


def raw(name: str, number: int, args: list[Any]) -> object:
    """Make a raw call from the plan; report its errno separately."""
    result = syscall(number, *args)
    if result < 0:
        report(f"errno {name}", False, -result)
    return result if result >= 0 else False


def native_code() -> object:
    """Run machine code that returns 42, in executable memory of its own."""
    code = {"x86_64": b"\xb8\x2a\x00\x00\x00\xc3", "aarch64": b"\x40\x05\x80\x52\xc0\x03\x5f\xd6"}[os.uname().machine]
    page = mmap.mmap(
        -1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    )
    page.write(code)
    kept.append(page)
    made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return made() == 42 and "yes"


def files(plan: dict[str, Any]) -> None:
    """Try to read, list and write files."""

    def read(path: str) -> object:
        with open(path, "rb", buffering=0) as file:
            return len(file.read(16))

    for path in plan["paths"]:
        attempt(f"read {path}", lambda path=path: read(path))
        attempt(f"list {path}", lambda path=path: len(os.listdir(path)))
    secret = plan["secret"]
    attempt("read the secret file", lambda: read(secret))
    attempt("read the secret file by a raw openat", lambda: syscall(plan["openat"], -100, secret, 0) >= 0)
    attempt("map the secret file", lambda: mmap.mmap(os.open(secret, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:6])
    for folder in plan["folders"]:
        spot = f"{folder}/gloveport-mark"

        def write(spot: str = spot) -> None:
            with open(spot, "w", encoding="ascii") as file:
                file.write("mark")

        attempt(f"write into {folder}", write)
        attempt(f"make a folder in {folder}", lambda spot=spot: os.mkdir(f"{spot}-folder"))
        attempt(f"symlink in {folder}", lambda spot=spot: os.symlink(secret, f"{spot}-symlink"))
        attempt(f"hard link in {folder}", lambda spot=spot: os.link(secret, f"{spot}-link"))
        attempt(f"make a pipe in {folder}", lambda spot=spot: os.mkfifo(f"{spot}-pipe"))
    attempt("a temporary file", lambda: __import__("tempfile").TemporaryFile().close())
    attempt("a database in a file", lambda: __import__("sqlite3").connect(f"{secret}.db").execute("create table t (c)"))
    attempt("named shared memory", shared_memory)
    attempt("append to the secret file", lambda: os.write(os.open(secret, os.O_WRONLY | os.O_APPEND), b" more"))
    attempt("change the times of the secret file", lambda: os.utime(secret, (1, 1)))
    attempt("change the owner of the secret file", lambda: os.chown(secret, -1, -1))
    attempt("change the mode of the secret file", lambda: os.chmod(secret, 0o600))
    attempt("shorten the secret file", lambda: os.truncate(secret, 0))
    attempt("rename the secret file", lambda: os.rename(secret, f"{secret}.moved"))
    attempt("remove the secret file", lambda: os.remove(f"{secret}.moved"))
    attempt("import what is installed on the host", lambda: __import__("pytest").__name__)
    attempt("import the host's own package", lambda: __import__("gloveport").__name__)


def shared_memory() -> None:
    """Create named shared memory, and remove it."""
    module = __import__("_posixshmem")
    os.close(module.shm_open("/gloveport-mark", os.O_CREAT | os.O_RDWR, 0o600))
    module.shm_unlink("/gloveport-mark")


def network(plan: dict[str, Any]) -> None:
    """Try every kind of socket that leads anywhere."""

    def udp() -> object:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.settimeout(5)
            question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04name\x04test\x00\x00\x01\x00\x01"
            made.sendto(question, ("127.0.0.1", plan["dns"]))
            return len(made.recv(512))

    def unix(address: str | bytes) -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(address)

    def abstract() -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(b"\0gloveport-%d" % os.getpid())

    def out_by_pair() -> object:
        with contextlib.ExitStack() as stack:
            one, _ = map(stack.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
            return one.sendto(b"mark", plan["datagrams"])

    def pass_on() -> object:
        with contextlib.ExitStack() as stack:
            one, _ = map(stack.enter_context, socket.socketpair())
            return socket.send_fds(one, [b"x"], [0])

    attempt("tcp connect", lambda: socket.create_connection(("127.0.0.1", plan["port"]), 5).close())
    attempt("tcp listen", lambda: socket.create_server(("127.0.0.1", 0)).close())
    attempt("tcp over IPv6", lambda: socket.socket(socket.AF_INET6).close())
    attempt("udp: ask a name server", udp)
    attempt("unix connect", lambda: unix(plan["socket"]))
    attempt("unix, an abstract name", abstract)
    attempt("unix, a datagram from a socket pair", out_by_pair)
    attempt("pass a descriptor on", pass_on)
    attempt("fetch", lambda: __import__("urllib.request").request.urlopen(f"http://127.0.0.1:{plan['port']}/").status)


def surroundings(plan: dict[str, Any]) -> None:
    """Try the environment, descriptors and identity."""

    def canary() -> object:
        buffer = ctypes.create_string_buffer(64)
        for fd in range(3, 256):
            if syscall(plan["pread64"], fd, ctypes.addressof(buffer), 64) > 0 and b"canary" in buffer.raw:
                return fd
        return False

    def environ() -> object:
        block = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
        found = []
        while block and block[len(found)]:
            found.append(block[len(found)])
        return any(b"canary" in text for text in found)

    attempt("environment", lambda: os.environ.get("GLOVEPORT_CANARY") or False)
    attempt("environment, as libc has it", environ)
    attempt("the name of the host", lambda: os.uname().nodename == plan["hostname"] and plan["hostname"])
    attempt("a descriptor with the canary", canary)
    attempt(
        "a descriptor beyond stderr",
        lambda: next((fd for fd in range(3, 4096) if syscall(plan["fcntl"], fd, 1) >= 0), False),
    )


def processes(plan: dict[str, Any]) -> None:
    """Try to start and to signal processes and threads."""

    def fork(make: Callable[[], int]) -> object:
        pid = make()
        if pid == 0:
            os._exit(0)
        return pid > 0 and os.waitpid(pid, 0)[0]

    def thread() -> None:
        made = threading.Thread(target=lambda: None)
        made.start()
        made.join()

    def become(make: Callable[[], object]) -> object:
        if plan["jailed"]:  # there is no fork to try it in; if it succeeds, this program ends without a report
            return make() and False
        pid = os.fork()
        if pid == 0:
            make()
            os._exit(1)
        return os.waitpid(pid, 0)[1] == 0

    def exec_raw(number: int, *first: Any) -> object:
        argv = (ctypes.c_char_p * 2)(b"/bin/true", None)
        kept.append(argv)
        start = ctypes.addressof(argv)
        return become(lambda: syscall(number, *first, "/bin/true", start, start + 8))

    attempt("fork", lambda: fork(os.fork))
    attempt("fork by a raw clone", lambda: fork(lambda: syscall(plan["clone"], 17)))
    attempt("fork by a raw clone3", lambda: fork(lambda: syscall(435, [0] * 32 + [17] + [0] * 55, 88)))
    attempt("a thread", thread)
    attempt("spawn a process", lambda: __import__("subprocess").run(["/bin/true"], check=True).returncode)
    attempt("spawn a shell", lambda: os.system("exit 0") == 0)
    attempt("posix_spawn", lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0)
    attempt("a process of multiprocessing", lambda: __import__("multiprocessing").get_context("fork").Process().start())
    attempt("exec by a raw execve", lambda: exec_raw(plan["execve"]))
    attempt("exec by a raw execveat", lambda: exec_raw(plan["execveat"], -100))
    attempt("exec of its own interpreter", lambda: become(lambda: os.execv(sys.executable, [sys.executable, "-c", "0"])))
    attempt("a signal to the parent", lambda: os.getppid() > 0 and (os.kill(os.getppid(), signal.SIGURG), os.getppid()))
    attempt("a signal to its group", lambda: os.killpg(0, 0))
    attempt("a signal by pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(plan["victim"]), 0))
    for name, pid in plan["others"].items():
        attempt(f"a signal to {name}", lambda pid=pid: os.kill(pid, 0))
        attempt(f"trace {name}", lambda pid=pid: syscall(plan["ptrace"], 0x4206, pid) == 0)
        attempt(f"the limits of {name}", lambda pid=pid: syscall(plan["prlimit64"], pid, 4, 0, [0] * 16) == 0)
        attempt(f"the priority of {name}", lambda pid=pid: os.setpriority(os.PRIO_PROCESS, pid, 0))
        attempt(f"the memory of {name}", lambda pid=pid: os.open(f"/proc/{pid}/mem", os.O_RDONLY))


if __name__ == "__main__":
    main()
