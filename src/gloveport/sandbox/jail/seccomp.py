"""The system calls that a guest may make, as a seccomp filter: an allow-list; every other call fails with EPERM.

`compile_filter` is pure: rules in, BPF bytes out, for either architecture. A `SeccompProgram` applies them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EAGAIN, EINVAL, ENOSYS, EPERM

from gloveport.sandbox.jail.syscalls import NUMBERS, prepare

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
KILL_PROCESS = 0x80000000


def errno_action(code: int) -> int:
    """Return the action that fails a call with this errno."""
    return 0x00050000 | code


# BPF opcodes: load a word of the seccomp data, compare (equal, greater or equal), bitwise and, return.
_LD, _JEQ, _JGE, _AND, _RET = 0x20, 0x15, 0x35, 0x54, 0x06
_MAX_LINEAR_SEARCH = 4  # system calls compared one after the other, at a leaf of the binary search
_NR, _ARCH, _ARGS = 0, 4, 16

SELF = -1  # placeholder for the guest's own pid in a test; `SeccompProgram` fills it in


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """A test on one argument: `(argument & mask) == value`, on 32 bits, or on all 64 for pointers and flag words."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF
    whole: bool = False


@dataclass(frozen=True, slots=True)
class AllowIf:
    """A rule that allows a call when all tests of at least one alternative hold; any other call gets an action."""

    alternatives: tuple[tuple[ArgumentTest, ...], ...]
    otherwise: int = errno_action(EPERM)


Rule = int | AllowIf  # a number is an action


def allow_if(*tests: ArgumentTest) -> AllowIf:
    """Return the rule that allows a call when all tests hold."""
    return AllowIf((tests,))


def one_of(argument: int, *values: int) -> AllowIf:
    """Return the rule that allows a call when an int argument is one of the values."""
    return AllowIf(tuple((ArgumentTest(argument, value),) for value in values))


Instruction = tuple[int, int, int, int]  # code, k, jt, jf


@dataclass(frozen=True, slots=True)
class BpfFilter:
    """A BPF program, and the offsets in it that receive the guest's own pid."""

    code: bytes
    pid_offsets: tuple[int, ...] = ()


def compile_filter(rules: Mapping[str, Rule], *, machine: str, default: int) -> BpfFilter:
    """Compile rules by call name into a filter; names that the machine doesn't have are left out."""
    numbers = NUMBERS[machine]
    steps: list[Instruction] = [
        (_LD, _ARCH, 0, 0),
        (_JEQ, AUDIT_ARCH[machine], 1, 0),
        (_RET, KILL_PROCESS, 0, 0),  # another ABI (i386) has other call numbers; no honest guest uses one
        (_LD, _NR, 0, 0),
    ]
    if machine == "x86_64":
        steps += [(_JGE, X32_BIT, 0, 1), (_RET, errno_action(EPERM), 0, 0)]
    steps += _search(sorted((numbers[name], rule) for name, rule in rules.items() if name in numbers), default)
    holes = tuple(8 * place + 4 for place, (_, k, _, _) in enumerate(steps) if k == SELF)
    return BpfFilter(b"".join(struct.pack("=HBBI", code, jt, jf, k & 0xFFFFFFFF) for code, k, jt, jf in steps), holes)


def _search(rules: list[tuple[int, Rule]], default: int) -> list[Instruction]:
    """Return a binary search for the rule of a call number.

    It is worth it because the kernel evaluates the filter for every call number when a process installs it.
    """
    if len(rules) > _MAX_LINEAR_SEARCH:
        middle = len(rules) // 2
        below, above = _search(rules[:middle], default), _search(rules[middle:], default)
        return [(_JGE, rules[middle][0], len(below), 0), *below, *above]  # a jump spans at most 255 instructions
    steps: list[Instruction] = []
    for number, rule in rules:
        block = [(_RET, rule, 0, 0)] if isinstance(rule, int) else _alternatives(rule)
        steps += [(_JEQ, number, 0, len(block)), *block]
    return [*steps, (_RET, default, 0, 0)]


def _alternatives(rule: AllowIf) -> list[Instruction]:
    block: list[Instruction] = []
    for tests in rule.alternatives:
        steps = [step for test in tests for step in _test(test)]
        # A failed comparison jumps to the next alternative, just behind this one's RET.
        for place, (code, k) in enumerate(steps):
            block.append((code, k, 0, len(steps) - place if code == _JEQ else 0))
        block.append((_RET, ALLOW, 0, 0))
    block.append((_RET, rule.otherwise, 0, 0))
    return block


def _test(test: ArgumentTest) -> list[tuple[int, int]]:
    low = _ARGS + 8 * test.argument
    steps = [(_LD, low)]
    if test.mask != 0xFFFFFFFF:
        steps.append((_AND, test.mask))
    steps.append((_JEQ, test.value))
    if test.whole:
        steps += [(_LD, low + 4), (_JEQ, 0)]
    return steps


# ── the policy ──

_ALWAYS = """
read write readv writev pread64 close fstat newfstatat statx stat lstat lseek access faccessat faccessat2 openat getcwd
munmap mprotect mremap brk pkey_alloc pkey_free pkey_mprotect
rseq sched_yield sched_getaffinity sched_getscheduler sched_getparam
getpid gettid getppid getuid geteuid getgid getegid getrandom getrusage uname
nanosleep gettimeofday
epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall exit exit_group
"""

# The flags of pthread_create. Any other clone creates a process or a namespace.
_THREAD_FLAGS = 0x3D0F00
# The same of Go's runtime on x86_64, which sets the thread's storage, and on aarch64.
_GO_THREAD_FLAGS = (0xD0F00, 0x50F00)
# No F_SETOWN or F_SETSIG: with them a guest could have the kernel send SIGKILL to any process of its user.
# No locks: with them two guests could communicate over the files that they share.
_FCNTL = (0, 1, 2, 3, 4, 1030)  # dup, descriptor and file flags, dup with close-on-exec
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
_PRCTL = (15, 16, 0x53564D41)  # PR_SET_NAME PR_GET_NAME PR_SET_VMA; never PR_SET_PDEATHSIG
_ARCH_SET_FS = 0x1002
_AF_UNIX = 1
_MSG_OOB = 0x1
_MAP_SHARED, _MAP_GROWSDOWN, _MAP_HUGETLB = 0x1, 0x100, 0x40000
# What allocators need. Never MADV_MERGEABLE: it reveals what other guests hold in memory. Never MADV_PAGEOUT: with it a
# guest could hold more memory than its resident size shows.
_MADVISE = (0, 1, 2, 3, 4, 8, 10, 14, 15, 16, 17, 102, 103)
# A shared futex on a file that others map, such as libc, is a channel to them, whether one waits or wakes (S24). So no
# robust lists either: at the end of a thread, the kernel wakes whoever waits for the futexes that they name.
_PRIVATE_FUTEX = (ArgumentTest(1, 0x80, mask=0x80),)
# pthread_join: FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, without a timeout. The kernel wakes it with a shared wake.
_JOIN = (ArgumentTest(1, 9 | 0x100), ArgumentTest(3, 0, whole=True))
_CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep")
# What a workspace needs: no link, symlink, mknod, lock or xattr. It is no disk, and the mode and the times of its files
# have no meaning: to sync or to set them succeeds and does nothing.
_FILES = "unlink unlinkat mkdir mkdirat rmdir rename renameat ftruncate truncate pwrite64 chdir getdents64"
_IGNORED = "chmod fchmod fchmodat fchmodat2 utimensat fsync fdatasync"
_RENAME_FLAGS = (0, 1)  # RENAME_NOREPLACE; never RENAME_WHITEOUT, which makes a device


def guest_rules(
    *, may_exec: bool, may_join: bool = False, has_workspace: bool = False, is_go: bool = False
) -> dict[str, Rule]:
    """Return the rules for a guest. `may_exec` is for an engine that is exec'd once and starts threads.

    A forked engine may do neither: it is one thread of one process from its first call on. `may_join` is for an engine
    whose main thread spends its life in pthread_join. `has_workspace` is for one that changes files in its workspace,
    and `is_go` for a program of Go that lists folders.
    """
    rules: dict[str, Rule] = {
        "fcntl": one_of(1, *_FCNTL),
        "ioctl": one_of(1, *_IOCTL),
        "prctl": one_of(0, *_PRCTL),
        "arch_prctl": one_of(0, _ARCH_SET_FS),
        "clone": allow_if(ArgumentTest(0, _THREAD_FLAGS, whole=True)),
        "clone3": errno_action(ENOSYS),  # its flags lie in memory, where a filter can't read them; libc falls back to clone
        # RLIMIT_DATA does not count shared or downward-growing memory; the resident size does not count huge pages.
        "mmap": allow_if(ArgumentTest(3, 0, mask=_MAP_SHARED | _MAP_GROWSDOWN | _MAP_HUGETLB)),
        "madvise": one_of(2, *_MADVISE),
        # Only on connected sockets: an address would be a way out. No urgent data: CVE-2025-38236.
        "recvfrom": allow_if(ArgumentTest(4, 0, whole=True), ArgumentTest(3, 0, mask=_MSG_OOB)),
        "sendto": allow_if(ArgumentTest(4, 0, whole=True), ArgumentTest(3, 0, mask=_MSG_OOB)),
        "prlimit64": allow_if(ArgumentTest(0, 0), ArgumentTest(2, 0, whole=True)),
        # Landlock does not restrict reading the target of a symbolic link: for a guest, nothing is a link.
        "readlink": errno_action(EINVAL),
        "readlinkat": errno_action(EINVAL),
        # Not EPERM: libc joins a thread by a shared wait, repeats it on EAGAIN, and aborts on EPERM.
        "futex": AllowIf((_PRIVATE_FUTEX, *([_JOIN] if may_join else [])), otherwise=errno_action(EAGAIN)),
        "kill": one_of(0, SELF),
        "tgkill": one_of(0, SELF),
    }
    # The system's clocks and the guest's own. A negative clock id is the CPU time of another process.
    rules.update(dict.fromkeys(_CLOCKS, allow_if(ArgumentTest(0, 0, mask=0xFFFFFFF0))))
    rules.update(dict.fromkeys(_ALWAYS.split(), ALLOW))
    if may_exec:
        rules.update(dict.fromkeys(("execve", "execveat", "set_tid_address"), ALLOW))
        # For the wake-up calls of an engine with threads. The number of a socket is from one counter of the machine (S24).
        rules["socketpair"] = one_of(0, _AF_UNIX)
    else:
        rules["clone"] = errno_action(EPERM)
        rules["getdents64"] = ALLOW  # Python lists a folder before it imports from it
    if is_go:
        flags = (_THREAD_FLAGS, *_GO_THREAD_FLAGS)
        rules["clone"] = AllowIf(tuple((ArgumentTest(0, value, whole=True),) for value in flags))
        rules["getdents64"] = ALLOW
    if has_workspace:
        rules.update(dict.fromkeys(_FILES.split(), ALLOW))
        rules["renameat2"] = one_of(4, *_RENAME_FLAGS)
        rules.update(dict.fromkeys(_IGNORED.split(), errno_action(0)))
    return rules


EXEC_WATCH: dict[str, Rule] = {"execve": NOTIFY, "execveat": NOTIFY}

# ── installation ──

_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_getpid = os.getpid  # the guest package of a zygote replaces it


class SeccompProgram:
    """A filter in the kernel's layout. Built before a fork, so that the child only fills in its own pid."""

    def __init__(self, filter_: BpfFilter) -> None:
        self.filter = filter_
        self._code = ctypes.create_string_buffer(filter_.code, len(filter_.code))
        self._header = struct.pack("@HP", len(filter_.code) // 8, ctypes.addressof(self._code))

    def prepare(self, flags: int = 0) -> Callable[[], int]:
        """Return a function that applies the filter to its process, irrevocably; it needs no_new_privs."""
        apply = prepare("seccomp", _SET_MODE_FILTER, flags, self._header)
        code, places, getpid, fill_in = self._code, self.filter.pid_offsets, _getpid, struct.Struct("=I").pack_into

        def install() -> int:
            pid = getpid()
            for place in places:
                fill_in(code, place, pid)
            return apply()

        return install

    def install_with_listener(self) -> int:
        """Apply the filter with its NOTIFY actions; return the descriptor on which those are answered."""
        return self.prepare(_NEW_LISTENER)()
