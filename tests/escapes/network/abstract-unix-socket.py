# Tries: a UNIX socket with an abstract name, which no file system guards.
# Origin: CVE-2020-15257 (containerd).

import socket

made = socket.socket(socket.AF_UNIX)
made.connect("\0" + input["abstract"])
made.recv(10)
