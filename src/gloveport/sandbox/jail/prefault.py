"""The memory that every guest of a zygote touches: learned once, from one guest, and had by the others in two calls.

A fork shares its parent's memory. It pays for each page when it first writes there, with an exception and a copy, a
thousand times in its first milliseconds; told beforehand which pages, the kernel copies all of them in one go.

    fork server:  record_touched_pages() looks at a guest that has walked the way of a run, and gives the zygote what it saw
    guest:        the calls of make_prefaulter(), first of all
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress

from gloveport.sandbox.jail.syscalls import MACHINE, NUMBERS

_MAX_RANGES = 1024  # ranges in one call
_RANGE = struct.Struct("=QQ")
_HALF_BYTES = _MAX_RANGES * _RANGE.size
TABLE_BYTES = 2 * _HALF_BYTES  # what is written to, then what is only read

_POPULATE_READ, _POPULATE_WRITE = 22, 23
_PAGE_BYTES = mmap.PAGESIZE
_PRESENT, _OF_A_FILE, _ALONE = 1 << 63, 1 << 61, 1 << 56


def make_prefaulter(table: mmap.mmap) -> Callable[[], None]:
    """What has the kernel map the pages of a table here; nothing where it does not know how (before Linux 6.13).

    It leaves the heap as it found it, whatever the table holds: guests must not differ by it.
    """
    syscall = ctypes.PyDLL(None)["syscall"]
    number, start = NUMBERS[MACHINE]["process_madvise"], ctypes.addressof(ctypes.c_char.from_buffer(table))
    written, read = ctypes.c_void_p(start), ctypes.c_void_p(start + _HALF_BYTES)

    def prefault() -> None:
        me = os.pidfd_open(os.getpid())
        syscall(number, me, written, _MAX_RANGES, _POPULATE_WRITE, 0)
        syscall(number, me, read, _MAX_RANGES, _POPULATE_READ, 0)
        os.close(me)

    return prefault


def record_touched_pages(proc: int, guest: int, zygote: int) -> bytes:
    """The pages that a guest of this zygote has of its own, and those of files that it has read; empty if none may look."""
    written: list[tuple[int, int]] = []
    read: list[tuple[int, int]] = []
    with suppress(OSError):
        known = dict(_mappings(proc, zygote))
        with open(os.open(f"{guest}/pagemap", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc), "rb", buffering=0) as pagemap:
            for (start, end), access in known.items():
                pagemap.seek(start // _PAGE_BYTES * 8)
                flags = struct.unpack(f"={(end - start) // _PAGE_BYTES}Q", pagemap.read((end - start) // _PAGE_BYTES * 8))
                if "w" in access:
                    written += _ranges(start, flags, (_PRESENT | _ALONE, _OF_A_FILE))
                elif "r" in access:
                    read += _ranges(start, flags, (_PRESENT | _OF_A_FILE, 0))
    return _pack(written) + _pack(read)


def _mappings(proc: int, pid: int) -> Iterator[tuple[tuple[int, int], str]]:
    with open(os.open(f"{pid}/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)) as lines:
        for line in lines:
            place, access = line.split()[:2]
            start, end = (int(edge, 16) for edge in place.split("-"))
            if access.endswith("p") and "[v" not in line:  # not the kernel's own: vvar, vdso, vsyscall
                yield (start, end), access


def _ranges(start: int, flags: tuple[int, ...], wanted: tuple[int, int]) -> list[tuple[int, int]]:
    """Address and length of each run of pages that have all of the first flags and none of the second."""
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
