# Tries: memory that is made read-only, so that no limit counts it, by a process whose name is a line of its own status:
# who looks there for its size finds the name first.
# Origin: an attack on this host, which once believed it.

native.call("prctl", 15, b"VmRSS:0 kB\0", 0, 0, 0)
made, step = 0, 64 << 20
while made < 1 << 30:
    where = native.call("mmap", 0, step, 3, 0x22, -1, 0)
    if where < 0:
        break
    ctypes.memset(where, 1, step)
    native.call("mprotect", where, step, 1)
    made += step
native.call("prctl", 15, b"python\0", 0, 0, 0)
made
