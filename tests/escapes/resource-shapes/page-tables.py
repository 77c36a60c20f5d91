# Tries: memory that no process seems to hold: one page is read in each two megabytes of an empty mapping, which costs
# the kernel a page table each time, and the process nothing.
# Origin: own idea: neither RLIMIT_DATA nor the resident size counts page tables.

import ctypes

step, count = 2 << 20, 170_000
where = native.call("mmap", 0, step * count, 1, 0x4022, -1, 0)
native.call("madvise", where, step * count, 15)
at, peek = 0, ctypes.c_char.from_address
while where > 0 and at < count:
    peek(where + at * step).value
    at += 1
[where > 0, at]
