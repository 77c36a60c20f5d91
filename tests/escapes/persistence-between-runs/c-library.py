# Tries: the environment of the C library, which is not that of the language, set by one run and read by the next.
# Origin: S16; state below the language.

import ctypes

libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
if input["round"] == 1:
    libc.setenv(b"PLANTED", input["plant"].encode(), 1)
libc.getenv(b"PLANTED") if input["round"] == 2 else None
