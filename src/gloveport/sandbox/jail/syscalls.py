"""Linux system calls by name: the numbers on x86_64 and aarch64, and `call` for those that Python doesn't offer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

# Name, x86_64, aarch64; a dash means that the architecture has no such call.
_TABLE = """
access 21 -               chdir 80 49
chmod 90 -                fchmod 91 52              fchmodat 268 53           fchmodat2 452 452
fdatasync 75 83           fsync 74 82               ftruncate 77 46           mkdir 83 -
mkdirat 258 34            pwrite64 18 68            rename 82 -               renameat 264 38
renameat2 316 276         rmdir 84 -                truncate 76 45            unlink 87 -
unlinkat 263 35           utimensat 280 88
arch_prctl 158 -          brk 12 214                capset 126 91
clock_getres 229 114      clock_gettime 228 113     clock_nanosleep 230 115   clone 56 220
clone3 435 435            close 3 57                close_range 436 436       epoll_create1 291 20
epoll_ctl 233 21          epoll_pwait 281 22        epoll_wait 232 -          eventfd2 290 19
execve 59 221             execveat 322 281          exit 60 93                exit_group 231 94
faccessat 269 48          faccessat2 439 439        fcntl 72 25               fstat 5 80
futex 202 98              getcwd 79 17              getdents64 217 61         getegid 108 177
geteuid 107 175           personality 135 92
getgid 104 176            getpid 39 172             getppid 110 173           getrandom 318 278
getrusage 98 165          gettid 186 178            gettimeofday 96 169       getuid 102 174
ioctl 16 29               kill 62 129               landlock_add_rule 445 445
landlock_create_ruleset 444 444                     landlock_restrict_self 446 446
lseek 8 62                lstat 6 -                 madvise 28 233            mmap 9 222
mount 165 40              mount_setattr 442 442
mprotect 10 226           mremap 25 216             munmap 11 215             nanosleep 35 101
newfstatat 262 79         openat 257 56             pivot_root 155 41         pkey_alloc 330 289
pkey_free 331 290         pkey_mprotect 329 288     poll 7 -                  ppoll 271 73
prctl 157 167             pread64 17 67             prlimit64 302 261         process_madvise 440 440
read 0 63
readlink 89 -             readlinkat 267 78         readv 19 65               recvfrom 45 207
restart_syscall 219 128   rseq 334 293              rt_sigaction 13 134       rt_sigprocmask 14 135
rt_sigreturn 15 139       sched_getaffinity 204 123 sched_getparam 143 121    sched_getscheduler 145 120
sched_yield 24 124        seccomp 317 277           sendto 44 206
set_tid_address 218 96    sethostname 170 161       setns 308 268             sigaltstack 131 132
socket 41 198
socketpair 53 199         stat 4 -                  statx 332 291
tgkill 234 131            umount2 166 39            uname 63 160              unshare 272 97
write 1 64                writev 20 66
"""


def _numbers(column: int) -> dict[str, int]:
    words = _TABLE.split()
    rows = [words[start : start + 3] for start in range(0, len(words), 3)]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


NUMBERS = {"x86_64": _numbers(1), "aarch64": _numbers(2)}
MACHINE = os.uname().machine

# PyDLL keeps the interpreter lock: after a raw clone, no other thread exists that could release it.
_libc = ctypes.PyDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_syscall = _libc.syscall
_syscall.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * 6]  # c_void_p accepts an int, bytes or a ctypes value
_syscall.restype = ctypes.c_long
_REST = (0,) * 6


def call(name: str, *args: object) -> int:
    """Make a system call and return its result; OSError with the call's name when the kernel refuses."""
    result = _syscall(NUMBERS[MACHINE][name], *args, *_REST[len(args) :])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def prctl(option: int, value: int) -> int:
    """Make a prctl call and return its result; OSError when the kernel refuses."""
    result = _prctl(option, value, 0, 0, 0)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")
    return result


# A guest that is forked pays with a copied page for each object that it touches first. So what it does before its program
# is prepared before the fork, and touches few.


def prepare(name: str, *args: object) -> Callable[[], int]:
    """Return a function that makes a system call, as `call` does."""
    syscall, get_errno = _syscall, ctypes.get_errno
    number, padded = NUMBERS[MACHINE][name], (*args, *_REST[len(args) :])

    def perform() -> int:
        result = syscall(number, *padded)
        if result < 0:
            code = get_errno()
            raise OSError(code, f"{name}: {os.strerror(code)}")
        return result

    return perform


def prepare_write(folder: int, path: str, text: bytes) -> Callable[[], None]:
    """Return a function that writes to the file of this path below a folder."""
    open_, write, close, flags = os.open, os.write, os.close, os.O_WRONLY | os.O_CLOEXEC

    def perform() -> None:
        fd = open_(path, flags, dir_fd=folder)
        try:
            write(fd, text)
        finally:
            close(fd)

    return perform
