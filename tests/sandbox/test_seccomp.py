"""The allow-list is the same on both architectures: all its rules are simulated here; test_jail tries them for real."""

import struct
from errno import EAGAIN, ENOSYS, EPERM

import pytest

from gloveport.sandbox.jail import seccomp
from gloveport.sandbox.jail.syscalls import NUMBERS
from tests.sandbox.jail.bpf import decide

REFUSED = seccomp.errno_action(EPERM)
MISSING = seccomp.errno_action(ENOSYS)
AGAIN = seccomp.errno_action(EAGAIN)
ALLOWED = seccomp.ALLOW
PID = 4242
HIGH = 1 << 32

# Dangerous calls that the jail's table doesn't name: x86_64, aarch64 (None: the architecture lacks it).
DANGEROUS: dict[str, tuple[int | None, int | None]] = {
    "accept4": (288, 242), "add_key": (248, 217), "bind": (49, 200), "bpf": (321, 280), "chmod": (90, None),
    "chroot": (161, 51), "connect": (42, 203), "creat": (85, None), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "fork": (57, None), "fsopen": (430, 430),
    "init_module": (175, 105), "inotify_init1": (294, 26), "io_uring_enter": (426, 426),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30),
    "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219), "link": (86, None), "linkat": (265, 37),
    "listen": (50, 201), "memfd_create": (319, 279), "migrate_pages": (256, 238), "mkdirat": (258, 34),
    "mlock": (149, 228), "modify_ldt": (154, None), "move_mount": (429, 429), "mq_open": (240, 180),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "openat2": (437, 437), "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "process_madvise": (440, 440),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "reboot": (169, 142), "recvmsg": (47, 212), "renameat2": (316, 276), "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138), "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sendmsg": (46, 211), "setns": (308, 268),
    "set_robust_list": (273, 99), "setpriority": (141, 140), "setresuid": (117, 147), "setrlimit": (160, 164), "setsid": (112, 157),
    "setuid": (105, 146), "shmget": (29, 194), "splice": (275, 76), "swapon": (167, 224), "symlinkat": (266, 36),
    "sysinfo": (99, 179), "syslog": (103, 116), "timer_create": (222, 107), "tkill": (200, 130), "unlinkat": (263, 35),
    "userfaultfd": (323, 282), "vfork": (58, None), "vmsplice": (278, 75),
}  # fmt: skip

# The jail's own set-up uses these; its guests may not.
KEPT_BACK = """
capset close_range landlock_add_rule landlock_create_ruleset landlock_restrict_self mount mount_setattr pivot_root seccomp
sethostname socket umount2 unshare
""".split()  # noqa: SIM905  a table of words


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


def judge(machine: str, name: str, *args: int, may_exec: bool = True, may_join: bool = False) -> int:
    """Return the action of the guest's filter for a call."""
    return judge_number(machine, NUMBERS[machine][name], *args, may_exec=may_exec, may_join=may_join)


def judge_number(machine: str, number: int, *args: int, may_exec: bool = True, may_join: bool = False) -> int:
    rules = seccomp.guest_rules(may_exec=may_exec, may_join=may_join)
    made = seccomp.compile_filter(rules, machine=machine, default=REFUSED)
    code = bytearray(made.code)
    for place in made.pid_offsets:
        struct.pack_into("=I", code, place, PID)
    return decide(bytes(code), arch=seccomp.AUDIT_ARCH[machine], number=number, args=args)


def test_every_call_that_no_rule_names_is_refused(machine: str) -> None:
    rules = seccomp.guest_rules(may_exec=True)
    named = {NUMBERS[machine][name] for name in rules if name in NUMBERS[machine]}
    assert {judge_number(machine, number) for number in range(600) if number not in named} == {REFUSED}


def test_dangerous_calls_are_refused_whatever_their_arguments(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    numbers = [row[column] for row in DANGEROUS.values()] + [NUMBERS[machine][name] for name in KEPT_BACK]
    for number in numbers:
        for args in ((), (PID,), (0, 0, 0, 0, 0, 0), (1, 1, 1, 1, 1, 1)):
            assert number is None or judge_number(machine, number, *args) == REFUSED


def test_reading_computing_and_waiting_are_allowed(machine: str) -> None:
    for name in ("read", "write", "openat", "mmap", "epoll_ctl", "exit_group", "getrandom", "clock_nanosleep"):
        assert judge(machine, name, 7, 7, 7) == ALLOWED


def test_a_call_of_another_architecture_kills_the_guest(machine: str) -> None:
    made = seccomp.compile_filter(seccomp.guest_rules(may_exec=True), machine=machine, default=REFUSED)
    for foreign in (0x40000003, 0x40000028, seccomp.AUDIT_ARCH["aarch64" if machine == "x86_64" else "x86_64"]):
        assert decide(made.code, arch=foreign, number=NUMBERS[machine]["read"]) == seccomp.KILL_PROCESS


def test_x32_calls_are_refused() -> None:
    for number in NUMBERS["x86_64"].values():
        assert judge_number("x86_64", number | seccomp.X32_BIT) == REFUSED


def test_clone_makes_threads_and_nothing_else(machine: str) -> None:
    thread = 0x3D0F00
    assert judge(machine, "clone", thread) == ALLOWED
    for flags in (17, 0, thread | 0x10000000, thread & ~0x10000, thread | 0x20000, thread | HIGH, 0x4111):
        assert judge(machine, "clone", flags) == REFUSED
    assert judge(machine, "clone3", 0) == MISSING


def test_signals_reach_only_the_guest_itself(machine: str) -> None:
    for name in ("kill", "tgkill"):
        assert judge(machine, name, PID, 6) == ALLOWED
        for other in (0, 1, -1, -PID, PID + 1, PID - 1):
            assert judge(machine, name, other, 9) == REFUSED


def test_futexes_are_private_but_for_a_join_where_the_engine_needs_one(machine: str) -> None:
    """Threat S24: a shared futex on a file that others map reaches them."""
    private, realtime, join, word = 0x80, 0x100, 0x109, 0x7F00
    for operation in range(14):
        for flags in (0, realtime):
            for may_exec in (True, False):
                assert judge(machine, "futex", word, operation | private | flags, 1, may_exec=may_exec) == ALLOWED
                assert judge(machine, "futex", word, operation | flags, 1, may_exec=may_exec) == AGAIN
            allowed = ALLOWED if operation | flags == join else AGAIN
            assert judge(machine, "futex", word, operation | flags, 1, may_join=True) == allowed
            assert judge(machine, "futex", word, operation | flags, 1, word, may_join=True) == AGAIN  # with a timeout


def test_no_futex_is_woken_at_the_end_of_a_forked_guest(machine: str) -> None:
    """Threat S24: with it the kernel makes a shared wake when a thread ends. An exec'd engine needs it for its threads."""
    assert judge(machine, "set_tid_address", 0x7F00) == ALLOWED
    assert judge(machine, "set_tid_address", 0x7F00, may_exec=False) == REFUSED
    assert judge(machine, "socketpair", 1, may_exec=False) == REFUSED


def test_limits_can_be_read_and_never_set(machine: str) -> None:
    assert judge(machine, "prlimit64", 0, 3, 0, 0x7F00) == ALLOWED
    for args in ((PID, 3, 0, 1), (1, 3, 0, 1), (0, 3, 0x7F00, 0), (0, 3, HIGH, 0)):
        assert judge(machine, "prlimit64", *args) == REFUSED


@pytest.mark.parametrize(
    ("name", "place", "allowed", "refused"),
    [
        ("fcntl", 1, (0, 1, 2, 3, 4, 1030), (8, 10, 15, 1024, 1031, 1033)),  # F_SETOWN F_SETSIG F_SETOWN_EX leases pipes
        ("ioctl", 1, (0x5401, 0x541B, 0x5421, 0x5451), (0x5412, 0x541C, 0x8901, 0x8902, 0x5423)),  # TIOCSTI TIOCLINUX
        ("prctl", 0, (15, 16, 0x53564D41), (1, 4, 8, 22, 24, 28, 35, 36, 38, 47, 59)),  # PDEATHSIG DUMPABLE SECCOMP …
        ("socketpair", 0, (1,), (2, 10, 16, 17, 40)),  # AF_UNIX
        ("madvise", 2, (4, 8, 14, 15, 16), (9, 12, 20, 21, 23, 25, 100, 101)),  # REMOVE MERGEABLE COLD PAGEOUT POPULATE …
        ("mmap", 3, (0x22, 0x4022, 0x32), (0x21, 0x03, 0x122, 0x40022)),  # SHARED GROWSDOWN HUGETLB
        ("clock_gettime", 0, (0, 1, 2, 3, 7, 11), (-6, -2, (~PID << 3) | 2, (~1 << 3) | 6, (~3 << 3) | 3)),  # of others
        ("clock_nanosleep", 0, (0, 1), (-6, (~PID << 3) | 2)),
        ("sendto", 3, (0, 0x40, 0x4000), (0x1, 0x41)),  # MSG_OOB
        ("recvfrom", 3, (0, 0x2, 0x100), (0x1, 0x43)),
    ],
)
def test_calls_with_many_uses_have_only_their_harmless_ones(
    machine: str, name: str, place: int, allowed: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    assert {judge(machine, name, *[0] * place, value) for value in allowed} == {ALLOWED}
    assert {judge(machine, name, *[0] * place, value) for value in refused} == {REFUSED}


def test_bytes_are_sent_only_to_whom_the_socket_is_connected(machine: str) -> None:
    for name in ("sendto", "recvfrom"):
        assert judge(machine, name, 3, 0x7F00, 9, 0, 0, 0) == ALLOWED
        assert judge(machine, name, 3, 0x7F00, 9, 0, 0x7F00, 16) == REFUSED
        assert judge(machine, name, 3, 0x7F00, 9, 0, HIGH, 16) == REFUSED


def test_an_engine_that_is_forked_ready_cannot_exec(machine: str) -> None:
    for name in ("execve", "execveat"):
        assert judge(machine, name) == ALLOWED
        assert judge(machine, name, may_exec=False) == REFUSED


def test_an_engine_that_is_forked_ready_makes_no_thread_and_lists_folders(machine: str) -> None:
    for flags in (0x3D0F00, 17, 0):
        assert judge(machine, "clone", flags, may_exec=False) == REFUSED
    assert judge(machine, "clone3", may_exec=False) == MISSING
    assert judge(machine, "getdents64", 3, may_exec=False) == ALLOWED
    assert judge(machine, "getdents64", 3) == REFUSED


def test_an_engine_that_is_forked_ready_may_do_nothing_else_that_one_that_is_execd_may_not(machine: str) -> None:
    for number in range(600):
        for args in ((), (PID,), (0, 1, 2, 3, 4, 5), (1, 1, 1, 1, 1, 1), (0x3D0F00,)):
            if judge_number(machine, number, *args, may_exec=False) == ALLOWED and number != NUMBERS[machine]["getdents64"]:
                assert judge_number(machine, number, *args) == ALLOWED


def test_the_watch_notifies_of_every_exec_and_of_nothing_else(machine: str) -> None:
    made = seccomp.compile_filter(seccomp.EXEC_WATCH, machine=machine, default=seccomp.ALLOW)
    for name, number in NUMBERS[machine].items():
        action = decide(made.code, arch=seccomp.AUDIT_ARCH[machine], number=number)
        assert action == (seccomp.NOTIFY if name.startswith("execve") else ALLOWED)


def test_both_tables_name_the_calls_that_both_architectures_have() -> None:
    only_x86 = set(NUMBERS["x86_64"]) - set(NUMBERS["aarch64"])
    files = {"chmod", "mkdir", "rename", "rmdir", "unlink"}
    assert only_x86 == {"access", "arch_prctl", "epoll_wait", "lstat", "poll", "readlink", "stat"} | files
    for machine in NUMBERS:
        assert len(set(NUMBERS[machine].values())) == len(NUMBERS[machine])
