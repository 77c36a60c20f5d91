# Tries: to have the kernel wake a process outside when a thread ends: by its own number's place, and by a robust list.
# Origin: own idea: set_tid_address(2) and set_robust_list(2) take any address, and the kernel's wake is a shared one.

import _thread

place = input["futexes"][0]
library = native.call("openat", -100, input["library"], 0, 0)
page = native.call("mmap", 0, 4096, 1, 2, library, place & -4096)
words = native.buffer(24)
words.raw = native.address(words).to_bytes(8, "little") + bytes(8) + (page + place % 4096).to_bytes(8, "little")
found = []


def end(how):
    found.append(native.call(*how))


for how in (("set_tid_address", page + place % 4096), ("set_robust_list", words, 24)):
    for _ in range(20):
        try:
            _thread.start_new_thread(end, (how,))
        except RuntimeError as error:
            found.append(str(error))
        native.call("nanosleep", (5_000_000 << 64).to_bytes(16, "little"), 0)
    found.append(native.call(*how))
found
