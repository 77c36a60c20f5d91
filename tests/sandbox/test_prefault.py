"""Prefaulting: the pages that one guest touches are recorded, and mapped in the next before it runs."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import struct
from collections.abc import Callable

import pytest

from gloveport.sandbox.jail import prefault
from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS

PAGES = 64
WRITTEN = (3, 4, 5, 20, 63)


def shared_with_children() -> tuple[mmap.mmap, int]:
    """Return memory that a fork shares until it writes, and its address."""
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(PAGES):
        memory[page * mmap.PAGESIZE] = 1
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def seen_of_child(work: Callable[[], None]) -> bytes:
    """Return the table recorded from a child that has done this work."""
    done, told = os.pipe()
    stop, stopped = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(stopped)
        work()
        os.write(told, b"x")
        os.read(stop, 1)
        os._exit(0)
    os.read(done, 1)
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    made = prefault.record_touched_pages(proc, child, os.getpid())
    for fd in (proc, done, told, stop, stopped):
        os.close(fd)
    os.waitpid(child, 0)
    return made


def ranges(table: bytes) -> list[tuple[int, int]]:
    return [(start, size) for start, size in struct.iter_unpack("=QQ", table) if size]


@pytest.mark.integration
def test_the_pages_that_a_fork_wrote_to_are_in_its_table_and_no_others_of_the_same_memory() -> None:
    memory, start = shared_with_children()

    def write() -> None:
        for page in WRITTEN:
            memory[page * mmap.PAGESIZE] = 2

    made = seen_of_child(write)
    assert len(made) == prefault.TABLE_BYTES
    inside = [(at - start, size) for at, size in ranges(made) if start <= at < start + len(memory)]
    page = mmap.PAGESIZE
    assert inside == [(3 * page, 3 * page), (20 * page, page), (63 * page, page)]


def test_a_process_that_may_not_be_looked_at_has_an_empty_table() -> None:
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
    try:
        assert prefault.record_touched_pages(proc, 2**22 + 1, 2**22 + 1) == bytes(prefault.TABLE_BYTES)
    finally:
        os.close(proc)


@pytest.mark.integration
def test_a_fork_that_takes_its_pages_pays_for_none_of_them_later() -> None:
    memory, start = shared_with_children()
    table = mmap.mmap(-1, prefault.TABLE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    struct.pack_into("=QQ", table, 0, start, len(memory))
    take = prefault.make_prefaulter(table)

    def faults_of_writing(*, taken: bool) -> int:
        child = os.fork()
        if child == 0:
            if taken:
                take(prefault.ALL)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for page in range(PAGES):
                memory[page * mmap.PAGESIZE] = 2
            os._exit(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert faults_of_writing(taken=False) >= PAGES
    # A kernel that lacks process_madvise for the process itself changes nothing.
    assert (faults_of_writing(taken=True) < PAGES // 2) == kernel_can()


def kernel_can() -> bool:
    memory, start = shared_with_children()
    ranged = struct.pack("=QQ", start, len(memory))
    me = os.pidfd_open(os.getpid())
    number = NUMBERS[MACHINE]["process_madvise"]
    taken = ctypes.CDLL(None).syscall(number, me, ctypes.c_char_p(ranged), 1, 23, 0)
    os.close(me)
    return taken == len(memory)
