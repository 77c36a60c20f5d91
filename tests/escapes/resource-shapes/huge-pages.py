# Tries: the host's huge pages, which are few, are kept for databases, and are in no process's resident size.
# Origin: own idea: MAP_HUGETLB is a flag of a call that every allocator needs.

found = []
for size in (0, 21 << 26, 30 << 26):
    found.append(native.call("mmap", 0, 2 << 20, 3, 0x44022 | size, -1, 0))
found
