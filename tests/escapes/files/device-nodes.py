# Tries: a device of the host made anew: the disk, the memory, the kernel's log.
# Origin: mknod as the way out of privileged containers.

import os, stat

found = []
for name, major, minor in (("mem", 1, 1), ("kmsg", 1, 11)):
    for path in (f"{input['write']}-{name}", f"/dev/{name}", f"/tmp/{input['name']}-{name}"):
        try:
            if not path.startswith("/dev"):
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(major, minor))
            found.append(path)
            if input["name"] in path:
                os.unlink(path)
        except OSError as error:
            found.append(str(error))
found
