# Tries: temporary files without a name: O_TMPFILE, then linked into a folder of the host.
# Origin: own idea: checks on O_CREAT alone.

import os

found = []
try:
    file = os.open(input["directory"], os.O_TMPFILE | os.O_RDWR)
    os.write(file, b"written")
    os.link(f"/proc/self/fd/{file}", input["write"], follow_symlinks=True)
except OSError as error:
    found.append(str(error))
found.append(native.call("openat", -100, input["directory"], 0o20200002, 0o644))
found.append(native.call("linkat", found[-1], "", -100, input["write"], 0x1000))
found
