# Tries: machine code in a buffer of its own that is made executable, and makes its own system calls.
# Origin: shellcode by ctypes and mprotect.
# machine: x86_64

import ctypes

size = 4096
block = ctypes.create_string_buffer(2 * size)
page = (ctypes.addressof(block) + size - 1) & -size
# mov eax, 85 (creat); mov esi, 0644; syscall; ret
ctypes.memmove(page, bytes([0xB8, 85, 0, 0, 0, 0xBE, 0xA4, 1, 0, 0, 0x0F, 5, 0xC3]), 13)
result = native.call("mprotect", page, size, 7)
run = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_char_p)(page)
[result, run(input["write"].encode())]
