# Tries: a variable of the host's environment, by the language, by libc, and by what the kernel kept of it.
# Origin: S9; twelve-factor applications keep their secrets there.

import ctypes, os, posix

found = [os.environ.get(input["env"]), dict(os.environb), dict(posix.environ), os.getenv(input["env"])]
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
found.append(libc.getenv(input["env"].encode()))
found
