# Tries: every descriptor up to 1024, read for what a careless parent left open, and used as a socket to order forks with.
# Origin: CVE-2024-21626 (runc's leaked descriptor); the zygote's own sockets.

import os, socket

found = []
for file in range(3, 1024):
    try:
        found.append([file, os.pread(file, 64, 0)])
    except OSError as error:
        if error.errno == 29:
            found.append([file, "a pipe or a socket"])
found
