# Tries: locks on a file that all guests share: one run writes a secret as a pattern of locked bytes, another that runs
# beside it reads the pattern.
# Origin: covert channels between containers; own idea.

import os, struct

paths = [os.__file__, "/usr/bin/python3", input["file"]]
file = next((opened for opened in (native.call("openat", -100, path, 0, 0) for path in paths) if opened >= 0), -1)
lock = lambda kind, at: struct.pack("hhiqqii", kind, 0, 0, at, 1, 0, 0)
text = b""
if input["round"] == 1:
    for at, byte in enumerate(input["plant"].encode()):
        for bit in range(8):
            if byte >> bit & 1:
                native.call("fcntl", file, 37, lock(0, at * 8 + bit))
else:
    for at in range(28):
        byte = 0
        for bit in range(8):
            asked = native.buffer(32)
            asked.raw = lock(1, at * 8 + bit)[:32]
            if native.call("fcntl", file, 36, asked) == 0 and asked.raw[0] != 2:
                byte |= 1 << bit
        text += bytes([byte])
text
