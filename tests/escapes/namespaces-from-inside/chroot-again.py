# Tries: chroot into another folder, and out again by a folder that was held open.
# Origin: the classic chroot break.

import os

found = [native.call("unshare", 0x200), native.call("chroot", input["directory"])]
for path in ("/canary", "../../../../../../../../canary"):
    try:
        found.append(open(path).read())
    except OSError as error:
        found.append(str(error))
found
