# Tries: a BPF map, the first step to code in the kernel.
# Origin: CVE-2021-3490, CVE-2022-23222.

import struct

native.call("bpf", 0, struct.pack("IIII", 2, 4, 8, 1) + bytes(112), 128)
