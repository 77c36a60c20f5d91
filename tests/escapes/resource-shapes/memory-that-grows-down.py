# Tries: private memory marked as a stack, which the limit on data does not count.
# Origin: own idea: VM_GROWSDOWN counts as stack.

size = 80 << 20
[native.call("mmap", 0, size, 3, 0x8122, -1, 0) > 0 for _ in range(10)]
