# Tries: hundreds of threads, each of which takes a process id of the host.
# Origin: fork bombs by threads; RLIMIT_NPROC counts per user.

import _thread, threading, ctypes

found = 0
threading.stack_size(65536)
gate = _thread.allocate_lock()
gate.acquire()
for _ in range(300):
    try:
        _thread.start_new_thread(gate.acquire, ())
        found += 1
    except Exception:
        break
libc = ctypes.CDLL(None)
handle = ctypes.c_ulong()
for _ in range(300 if not found else 0):
    found += libc.pthread_create(ctypes.byref(handle), None, libc.pause, None) == 0
found
