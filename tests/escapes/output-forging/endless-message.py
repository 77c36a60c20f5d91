# Tries: the head of a message of four gigabytes, and then nothing: a host that waits, or that makes room for it.
# Origin: S6; length prefixes that are believed.

import os

for file in range(3, 64):
    try:
        os.write(file, b"\xff\xff\xff\xff" + b"x" * 1000)
    except OSError:
        pass
await tools.add(1, 2)
