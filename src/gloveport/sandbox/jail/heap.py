"""Pack the heap of a zygote before it forks: a guest then writes to fewer pages, and pays for fewer copies.

A fork shares its parent's pages, and copies each one that it writes to. After the imports, every page of the heap has free
blocks, and the allocators hand those out first: the first objects of a guest would lie in hundreds of shared pages. So the
zygote takes all free blocks, for good. What a guest allocates then lies together, in new pages.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

# CPython's allocator: blocks up to 512 bytes, in pools of one size of block.
_BLOCK_STEP, _MAX_BLOCK_BYTES = 16, 512
_POOL_BYTES, _POOL_HEADER_BYTES = 16 * 1024, 48
_LOOP_BLOCKS = 4
_ARENA_BYTES = 1024 * 1024
_LARGE_PAGE_BYTES = 2 * 1024 * 1024
_MADV_COLLAPSE = 25
_MAX_FILLED_BYTES = 1024 * 1024  # for one size of block
# The C library's: free pieces of all sizes, taken from the largest down, so that none is split before it is taken.
_MAX_PIECE_BYTES, _PIECE_STEP = 120 * 1024, 0.97
_MAX_PIECES = 4_000  # of one size

_Allocate = Callable[[int], int]


def fill_holes() -> None:
    """Take every free block between objects, for good."""
    allocate = _function("PyObject_Malloc")
    for size in range(_BLOCK_STEP, _MAX_BLOCK_BYTES + 1, _BLOCK_STEP):
        _fill_pools(allocate, size)
    allocate, free = _function("malloc"), _function("free")
    end = allocate(_MAX_PIECE_BYTES)  # no hole is as large, so it lies behind all of them
    free(end)
    size = _MAX_PIECE_BYTES
    while size > _BLOCK_STEP:
        _fill_pieces(allocate, free, size, end)
        size = min(size - _BLOCK_STEP, int(size * _PIECE_STEP))


def _function(name: str) -> _Allocate:
    function = ctypes.PyDLL(None)[name]
    function.argtypes, function.restype = [ctypes.c_size_t], ctypes.c_size_t
    return function


def _fill_pools(allocate: _Allocate, size: int) -> None:
    """Take blocks of a size until they have filled a new pool from its start to its end.

    The integers here are blocks, too, so some of the pool may be theirs.
    """
    stride = _LOOP_BLOCKS * size
    last, in_new_pool = 0, False
    for _ in range(_MAX_FILLED_BYTES // size):
        block = allocate(size)
        place = block % _POOL_BYTES
        in_new_pool = (in_new_pool and last < block <= last + stride) or place < _POOL_HEADER_BYTES + stride
        if in_new_pool and place > _POOL_BYTES - size - stride:
            return
        last = block


def _fill_pieces(allocate: _Allocate, free: _Allocate, size: int, end: int) -> None:
    for _ in range(_MAX_PIECES):
        piece = allocate(size)
        if piece >= end:
            free(piece)
            return


def reserve(size: int) -> None:
    """Have Python's allocator map its next arenas one beside the other, for `use_large_pages`: 2 MiB of them make one."""
    blocks = [bytes(_MAX_BLOCK_BYTES - bytes.__basicsize__) for _ in range(size // _MAX_BLOCK_BYTES)]
    keep = ctypes.PyDLL(None)["Py_IncRef"]
    for block in {id(block) // _ARENA_BYTES: block for block in blocks}.values():
        keep(ctypes.py_object(block))  # one block keeps an arena from being given back


def use_large_pages(proc: int) -> None:
    """Back the heap by large pages where the kernel has some: a fork copies, and an exit drops, many pages at once."""
    madvise = ctypes.PyDLL(None)["madvise"]
    madvise.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    with open(os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc)) as lines:
        mappings = [line.split() for line in lines]
    for addresses, access, *_, path in ([*mapping, ""] if len(mapping) == 5 else mapping for mapping in mappings):
        if access == "rw-p" and path in ("", "[heap]"):
            start, end = (int(edge, 16) for edge in addresses.split("-"))
            start, end = -(-start // _LARGE_PAGE_BYTES) * _LARGE_PAGE_BYTES, end // _LARGE_PAGE_BYTES * _LARGE_PAGE_BYTES
            if start < end:
                madvise(start, end - start, _MADV_COLLAPSE)
