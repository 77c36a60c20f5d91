# Tries: a system call by another ABI: int 0x80 with the numbers of i386, from machine code of its own.
# Origin: seccomp(2): check the architecture.
# machine: x86_64

import ctypes

memory = native.call("mmap", 0, 4096, 7, 0x62, -1, 0)
# push rbx; mov eax, 8 (creat); mov ebx, edi; mov ecx, 0666; int 0x80; pop rbx; ret
code = bytes([0x53, 0xB8, 8, 0, 0, 0, 0x89, 0xFB, 0xB9, 0xB6, 1, 0, 0, 0xCD, 0x80, 0x5B, 0xC3])
ctypes.memmove(memory, code, len(code))
ctypes.memmove(memory + 256, input["write"].encode() + b"\0", len(input["write"]) + 1)
ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(memory)(memory + 256)
