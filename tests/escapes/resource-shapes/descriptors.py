# Tries: as many descriptors as there may be, which are taken from the table of the whole machine.
# Origin: fs.file-max; RLIMIT_NOFILE raised to its hard limit first.

import os, resource, socket

found = []
try:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
except Exception as error:
    found.append(str(error))
held = native.kept
try:
    for _ in range(1000):
        held.append(socket.socketpair())
except OSError as error:
    found.append(str(error))
[found, len(held)]
