# Tries: a shared futex on libc, which a process outside maps too: to wake that process is one bit a call.
# Origin: own idea: the kernel names a shared futex by its file, and asks for no permission to write.

place = input["futexes"][0]
library = native.call("openat", -100, input["library"], 0, 0)
page = native.call("mmap", 0, 4096, 1, 2, library, place & -4096)
found = []
for _ in range(50):
    found.append(native.call("futex", page + place % 4096, 1, 100))
    native.call("nanosleep", (5_000_000 << 64).to_bytes(16, "little"), 0)
found
