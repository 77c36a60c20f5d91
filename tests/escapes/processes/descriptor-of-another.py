# Tries: pidfd_getfd: a copy of a descriptor out of another process.
# Origin: pidfd_getfd(2); own idea.

import os

found = [native.call("pidfd_open", input["pid"], 0)]
for target in range(6):
    copy = native.call("pidfd_getfd", found[0], target, 0)
    found.append(copy)
    if copy >= 0:
        open(input["write"], "w").write(os.readlink(f"/proc/self/fd/{copy}"))
found
