# Tries: to be woken by a process outside, on a futex in libc, which both map; that somebody waits is a signal, too.
# Origin: own idea: the kernel names a shared futex by its file, and tells who wakes it how many waited.

place, value = input["futexes"][1], input["values"][1]
library = native.call("openat", -100, input["library"], 0, 0)
page = native.call("mmap", 0, 4096, 1, 2, library, place & -4096)
timeout = (2).to_bytes(16, "little")
[native.call("futex", page + place % 4096, operation, value, timeout, 0, -1) for operation in (0, 9)]
