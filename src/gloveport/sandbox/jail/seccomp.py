"""The system calls that a guest may make, as a seccomp program: an allow-list; everything else is EPERM.

`compile_filter` is pure: rules in, BPF bytes out, for either architecture. A `SeccompProgram` puts them in force.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from errno import EINVAL, ENOSYS, EPERM

from gloveport.sandbox.jail.syscalls import NUMBERS, call

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
KILL_PROCESS = 0x80000000


def errno_action(code: int) -> int:
    """The action that fails a call with an errno."""
    return 0x00050000 | code


# BPF: load a word of the seccomp data, compare, and, return.
_LD, _JEQ, _JGE, _AND, _RET = 0x20, 0x15, 0x35, 0x54, 0x06
_MAX_LINEAR_SEARCH = 4  # calls that are compared one after the other
_NR, _ARCH, _ARGS = 0, 4, 16

SELF = -1  # stands for the guest's own pid in a test; `SeccompProgram` fills it in


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """A test on one argument: `(argument & mask) == value`, on 32 bits or, for pointers and flag words, on all 64."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF
    whole: bool = False


# A rule is an action, or the alternatives of which one must hold for ALLOW (each a tuple of tests that all must hold).
Rule = int | tuple[tuple[ArgumentTest, ...], ...]


def one_of(argument: int, *values: int) -> Rule:
    """The rule that an int argument is one of the values."""
    return tuple((ArgumentTest(argument, value),) for value in values)


Instruction = tuple[int, int, int, int]  # code, k, jt, jf


@dataclass(frozen=True, slots=True)
class BpfFilter:
    """A BPF program and the places in it where the guest's own pid belongs."""

    code: bytes
    pid_offsets: tuple[int, ...] = ()


def compile_filter(rules: Mapping[str, Rule], *, machine: str, default: int) -> BpfFilter:
    """The program that applies `rules` by call name; names that the machine doesn't have are left out."""
    numbers = NUMBERS[machine]
    steps: list[Instruction] = [
        (_LD, _ARCH, 0, 0),
        (_JEQ, AUDIT_ARCH[machine], 1, 0),
        (_RET, KILL_PROCESS, 0, 0),  # a call of another ABI (i386) has other numbers: there is no honest reason for it
        (_LD, _NR, 0, 0),
    ]
    if machine == "x86_64":
        steps += [(_JGE, X32_BIT, 0, 1), (_RET, errno_action(EPERM), 0, 0)]
    steps += _search(sorted((numbers[name], rule) for name, rule in rules.items() if name in numbers), default)
    holes = tuple(8 * place + 4 for place, (_, k, _, _) in enumerate(steps) if k == SELF)
    return BpfFilter(b"".join(struct.pack("=HBBI", code, jt, jf, k & 0xFFFFFFFF) for code, k, jt, jf in steps), holes)


def _search(rules: list[tuple[int, Rule]], default: int) -> list[Instruction]:
    """Finds the rule of a number by halves: for each process the kernel tries the filter with every number there is."""
    if len(rules) > _MAX_LINEAR_SEARCH:
        middle = len(rules) // 2
        below, above = _search(rules[:middle], default), _search(rules[middle:], default)
        return [(_JGE, rules[middle][0], len(below), 0), *below, *above]  # no jump can go over 255 steps
    steps: list[Instruction] = []
    for number, rule in rules:
        block = [(_RET, rule, 0, 0)] if isinstance(rule, int) else _alternatives(rule)
        steps += [(_JEQ, number, 0, len(block)), *block]
    return [*steps, (_RET, default, 0, 0)]


def _alternatives(alternatives: tuple[tuple[ArgumentTest, ...], ...]) -> list[Instruction]:
    block: list[Instruction] = []
    for tests in alternatives:
        steps = [step for test in tests for step in _test(test)]
        # Every comparison that fails leaves for the next alternative, just behind this one's RET.
        for place, (code, k) in enumerate(steps):
            block.append((code, k, 0, len(steps) - place if code == _JEQ else 0))
        block.append((_RET, ALLOW, 0, 0))
    block.append((_RET, errno_action(EPERM), 0, 0))
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
futex set_robust_list rseq set_tid_address sched_yield sched_getaffinity sched_getscheduler sched_getparam
getpid gettid getppid getuid geteuid getgid getegid getrandom getrusage uname sysinfo
nanosleep gettimeofday
epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall exit exit_group
"""

# What pthread_create asks for: any other clone makes a process, or a namespace.
_THREAD_FLAGS = 0x3D0F00
# Without F_SETOWN and F_SETSIG, with which a guest could have SIGKILL sent to any process of its user.
# Without locks, by which two guests could talk over the files that they share.
_FCNTL = (0, 1, 2, 3, 4, 1030)  # dup, descriptor and file flags, dup with close-on-exec
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
_PRCTL = (15, 16, 0x53564D41)  # PR_SET_NAME PR_GET_NAME PR_SET_VMA; never PR_SET_PDEATHSIG
_ARCH_SET_FS = 0x1002
_AF_UNIX = 1
_MSG_OOB = 0x1
_MAP_SHARED, _MAP_GROWSDOWN, _MAP_HUGETLB = 0x1, 0x100, 0x40000
# What allocators ask for. Never MADV_MERGEABLE, by which guests could tell what others hold in their memory, nor
# MADV_PAGEOUT, by which they could hold more than is seen.
_MADVISE = (0, 1, 2, 3, 4, 8, 10, 14, 15, 16, 17, 102, 103)
_CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep")


def guest_rules(*, may_exec: bool) -> dict[str, Rule]:
    """What a guest may call; `may_exec` is for an engine that is exec'd once, and has threads.

    An engine that is forked ready to run has neither: all of it is one thread of one process, from its first call on.
    """
    rules: dict[str, Rule] = {
        "fcntl": one_of(1, *_FCNTL),
        "ioctl": one_of(1, *_IOCTL),
        "prctl": one_of(0, *_PRCTL),
        "arch_prctl": one_of(0, _ARCH_SET_FS),
        "clone": ((ArgumentTest(0, _THREAD_FLAGS, whole=True),),),
        "clone3": errno_action(ENOSYS),  # its flags lie in memory, where no filter sees them; libc falls back to clone
        # Shared and downward-growing memory is not counted by RLIMIT_DATA; huge pages are in no resident size.
        "mmap": ((ArgumentTest(3, 0, mask=_MAP_SHARED | _MAP_GROWSDOWN | _MAP_HUGETLB),),),
        "madvise": one_of(2, *_MADVISE),
        "socketpair": one_of(0, _AF_UNIX),
        # Only on what is connected already: an address would make them a way out. No urgent data: CVE-2025-38236.
        "recvfrom": ((ArgumentTest(4, 0, whole=True), ArgumentTest(3, 0, mask=_MSG_OOB)),),
        "sendto": ((ArgumentTest(4, 0, whole=True), ArgumentTest(3, 0, mask=_MSG_OOB)),),
        "prlimit64": ((ArgumentTest(0, 0), ArgumentTest(2, 0, whole=True)),),
        # Landlock lets anyone read where a symbolic link leads: to a guest, nothing is one.
        "readlink": errno_action(EINVAL),
        "readlinkat": errno_action(EINVAL),
        "kill": one_of(0, SELF),
        "tgkill": one_of(0, SELF),
    }
    # The clocks of the system and its own; a negative number is the processor time of another process.
    rules.update(dict.fromkeys(_CLOCKS, ((ArgumentTest(0, 0, mask=0xFFFFFFF0),),)))
    rules.update(dict.fromkeys(_ALWAYS.split(), ALLOW))
    if may_exec:
        rules.update(dict.fromkeys(("execve", "execveat"), ALLOW))
    else:
        rules["clone"] = errno_action(EPERM)
        rules["getdents64"] = ALLOW  # Python lists a folder before it imports from it
    return rules


EXEC_WATCH: dict[str, Rule] = {"execve": NOTIFY, "execveat": NOTIFY}

# ── putting it in force ──

_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3


class SeccompProgram:
    """A filter laid out for the kernel. Made before a fork, it costs the child nothing but its own pid to fill in."""

    def __init__(self, filter_: BpfFilter) -> None:
        self.filter = filter_
        self._code = ctypes.create_string_buffer(filter_.code, len(filter_.code))
        self._header = struct.pack("@HP", len(filter_.code) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        """Put it in force for this process, for good; it needs no_new_privs."""
        self._install(0)

    def install_with_listener(self) -> int:
        """Put it in force, NOTIFY actions and all; the descriptor on which those are answered."""
        return self._install(_NEW_LISTENER)

    def _install(self, flags: int) -> int:
        for place in self.filter.pid_offsets:
            struct.pack_into("=I", self._code, place, os.getpid())
        return call("seccomp", _SET_MODE_FILTER, flags, self._header)
