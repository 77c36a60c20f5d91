# Tries: variables of the process, in Python's copy and in libc's own.
# Origin: S16; the plain one.

import ctypes, os

libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
if input["round"] == 1:
    os.environ["PLANTED"] = input["plant"]
    libc.setenv(b"PLANTED_BELOW", input["plant"].encode(), 1)
[os.environ.get("PLANTED"), libc.getenv(b"PLANTED_BELOW")]
