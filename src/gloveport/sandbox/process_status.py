"""What the kernel reports of a process: its memory and its threads.

The calls keep the interpreter lock. They take microseconds, and a thread that released the lock would wait for a busy event
loop each time.
"""

from __future__ import annotations

import ctypes
import os

_NOT_RESIDENT = (b"VmPTE:", b"VmSwap:")  # memory that a process costs the machine beside its resident pages
_MAX_STATUS_BYTES = 4096

_libc = ctypes.PyDLL(None)
_open, _read, _close = _libc.open, _libc.read, _libc.close
_open.argtypes = [ctypes.c_char_p, ctypes.c_int]
_read.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
_read.restype = ctypes.c_ssize_t


def held_bytes(pid: int, pages: bytes = b"VmRSS:") -> int:
    """Return the memory that a process costs the machine: resident pages, page tables and swap; OSError if it has ended.

    A page table costs the kernel 4 KiB for each 2 MiB in which the process has read even one empty page. It is not part
    of the resident size, and no limit bounds it.
    """
    return sum(_kilobytes(pid, pages, *_NOT_RESIDENT)) * 1024


def data_bytes(pid: int) -> int:
    """Return the memory of a process that RLIMIT_DATA counts; OSError if it has ended."""
    return _kilobytes(pid, b"VmData:")[0] * 1024


def held_bytes_and_threads(pid: int) -> tuple[int, int]:
    """Return the memory that a process costs, and the number of its threads; OSError if it has ended."""
    threads, *held = _kilobytes(pid, b"Threads:", b"VmRSS:", *_NOT_RESIDENT)
    return sum(held) * 1024, threads


def is_running(pid: int) -> bool:
    """Return whether the first thread of a process computes, or would if it got a processor."""
    return b"\nState:\tR" in _read_status(f"/proc/{pid}")


def _kilobytes(pid: int, *fields: bytes) -> list[int]:
    text = _read_status(f"/proc/{pid}")
    if b"\nVmRSS:" not in text:  # its first thread has ended; others may still run
        threads = (_read_status(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task"))
        text = next((status for status in threads if b"\nVmRSS:" in status), b"")
    return [_read_number(text, field) for field in fields]


def _read_status(folder: str) -> bytes:
    status = _open(f"{folder}/status".encode(), os.O_RDONLY | os.O_CLOEXEC)
    if status < 0:  # it has ended
        return b""
    buffer = ctypes.create_string_buffer(_MAX_STATUS_BYTES)
    size = _read(status, buffer, _MAX_STATUS_BYTES)
    _close(status)
    return buffer.raw[: max(size, 0)]


def _read_number(text: bytes, field: bytes) -> int:
    # Match at the start of a line: the first line holds the process's name, which it can set to any text.
    _, found, rest = text.partition(b"\n" + field)
    if not found:
        raise OSError("the process has ended")
    return int(rest.split(None, 1)[0])
