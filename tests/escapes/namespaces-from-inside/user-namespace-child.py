# Tries: a child in a user namespace of its own, where it has every capability.
# Origin: CVE-2023-2640 (GameOver(lay)); user namespaces as attack surface.

pid = native.call("clone", 0x10000000 | 0x20000 | 17, 0, 0, 0, 0)
if pid == 0:
    native.call("nanosleep", __import__("struct").pack("qq", 3, 0), 0)
    native.call("exit_group", 0)
pid
