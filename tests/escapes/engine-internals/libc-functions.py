# Tries: files by the functions of the C library, without Python's own: fopen, open, creat, mkdir.
# Origin: the first use of ctypes in any jail.

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(200)
libc.fopen.restype = ctypes.c_void_p
file = libc.fopen(input["file"].encode(), b"r")
found = [bool(file), file and libc.fgets(buffer, 200, ctypes.c_void_p(file)), buffer.value]
found += [libc.creat(input["write"].encode(), 0o644), libc.mkdir(input["write"].encode() + b"-folder", 0o755)]
found
