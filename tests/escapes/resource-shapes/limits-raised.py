# Tries: its own limits raised again: descriptors, file size, core files, locked memory.
# Origin: resource.setrlimit; limits that a process sets itself are its own to change.

import resource

found = []
for name in ("NOFILE", "FSIZE", "CORE", "MEMLOCK", "NPROC", "DATA", "CPU", "AS"):
    kind = getattr(resource, f"RLIMIT_{name}")
    for value in (resource.RLIM_INFINITY, 1 << 20, 5000):
        try:
            resource.setrlimit(kind, (value, value))
            found.append([name, value])
            break
        except (OSError, ValueError) as error:
            found.append(str(error))
found
