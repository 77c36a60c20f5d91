# Tries: the dynamic loader, executed with a program as its argument: only the loader needs to be executable.
# Origin: noexec mounts passed by ld-linux.

import ctypes, glob

found = []
for loader in glob.glob("/lib*/ld-linux-*") + ["/lib64/ld-linux-x86-64.so.2"]:
    words = (ctypes.c_char_p * 4)(b"ld", b"/usr/bin/touch", input["write"].encode(), None)
    found.append(native.call("execve", loader, words, (ctypes.c_char_p * 1)(None)))
found
