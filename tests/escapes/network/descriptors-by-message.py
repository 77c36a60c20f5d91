# Tries: sockets that hold descriptors in flight: each message carries one, and none counts against the process.
# Origin: CVE-2021-0920 and the rest of SCM_RIGHTS; CVE-2013-4312 (descriptors in flight).

import os, socket

one, two = socket.socketpair()
other = socket.socket(socket.AF_UNIX)
other.connect(input["unix"])
socket.send_fds(one, [b"x"], [other.fileno()])
socket.recv_fds(two, 1, 1)
