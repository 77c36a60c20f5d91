# Tries: /proc/self/mem, which writes through read-only pages: the environment block is read back from the process's own
# stack.
# Origin: CVE-2016-5195 (Dirty COW) went this way.

import re

found = []
for line in open("/proc/self/maps"):
    if "[stack]" in line or "[heap]" in line:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(start)
            found += re.findall(input["prefix"].encode() + b"[0-9a-f]{24}", memory.read(end - start))
found
