"""Prefault pages in new guests: map the pages that every guest of a zygote touches, before the guest runs.

A fork shares its parent's memory and pays a page fault and a copy for each page that it first writes, a thousand times
in its first milliseconds. When it names the pages in advance, the kernel copies all of them in two calls. The pages are
recorded once, from a trial guest that does what a run does.

    fork server   record_touched_pages() reads the trial guest's page map; the zygote receives the table
    guest         the function from make_prefaulter() maps the pages in the table, before anything else
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS

_MAX_RANGES = 1024  # in one call; the kernel's UIO_MAXIOV
_RANGE = struct.Struct("=QQ")
_HALF_BYTES = _MAX_RANGES * _RANGE.size
ALL, NONE = _MAX_RANGES, 0
TABLE_BYTES = 2 * _HALF_BYTES  # pages to write first, then pages that are only read

_POPULATE_READ, _POPULATE_WRITE = 22, 23
_PAGE_BYTES = mmap.PAGESIZE
_PRESENT, _FILE_BACKED, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56


def make_prefaulter(table: mmap.mmap) -> Callable[[int], None]:
    """Return a function that has the kernel map the pages in a table; it has no effect before Linux 6.13.

    It takes the number of ranges to map, ALL or NONE. It leaves the heap in one state, whatever that is and whatever the
    table holds: guests must not differ because of it.
    """
    syscall = ctypes.PyDLL(None)["syscall"]
    number, start = NUMBERS[MACHINE]["process_madvise"], ctypes.addressof(ctypes.c_char.from_buffer(table))
    written, read = ctypes.c_void_p(start), ctypes.c_void_p(start + _HALF_BYTES)
    getpid, pidfd_open, close = os.getpid, os.pidfd_open, os.close  # the guest package may replace them

    def prefault(ranges: int) -> None:
        me = pidfd_open(getpid())
        syscall(number, me, written, ranges, _POPULATE_WRITE, 0)
        syscall(number, me, read, ranges, _POPULATE_READ, 0)
        close(me)

    return prefault


def record_touched_pages(proc: int, guest: int, zygote: int) -> bytes:
    """Return the table of pages that a guest has copied from this zygote or read from files; empty if it can't be read."""
    written: list[tuple[int, int]] = []
    read: list[tuple[int, int]] = []
    with suppress(OSError):
        known = dict(_mappings(proc, zygote))
        with open(os.open(f"{guest}/pagemap", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb", buffering=0) as pagemap:
            for (start, end), access in known.items():
                pagemap.seek(start // _PAGE_BYTES * 8)
                flags = struct.unpack(f"={(end - start) // _PAGE_BYTES}Q", pagemap.read((end - start) // _PAGE_BYTES * 8))
                if "w" in access:
                    written += _ranges(start, flags, (_PRESENT | _EXCLUSIVE, _FILE_BACKED))
                elif "r" in access:
                    read += _ranges(start, flags, (_PRESENT | _FILE_BACKED, 0))
    return _pack(written) + _pack(read)


def _mappings(proc: int, pid: int) -> Iterator[tuple[tuple[int, int], str]]:
    with open(os.open(f"{pid}/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)) as lines:
        for line in lines:
            addresses, access = line.split()[:2]
            start, end = (int(edge, 16) for edge in addresses.split("-"))
            if access.endswith("p") and "[v" not in line:  # skip the kernel's own: vvar, vdso, vsyscall
                yield (start, end), access


def _ranges(start: int, flags: tuple[int, ...], wanted: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (address, length) of each run of pages that have all flags of `wanted[0]` and none of `wanted[1]`."""
    yes, no = wanted
    found: list[tuple[int, int]] = []
    for index, page in enumerate(flags):
        if page & (yes | no) != yes:
            continue
        here = start + index * _PAGE_BYTES
        if found and sum(found[-1]) == here:
            found[-1] = (found[-1][0], found[-1][1] + _PAGE_BYTES)
        else:
            found.append((here, _PAGE_BYTES))
    return found


def _pack(ranges: list[tuple[int, int]]) -> bytes:
    longest = sorted(ranges, key=lambda one: -one[1])[:_MAX_RANGES]
    return b"".join(_RANGE.pack(*one) for one in sorted(longest)).ljust(_HALF_BYTES, b"\0")
