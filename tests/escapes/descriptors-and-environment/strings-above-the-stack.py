# Tries: the environment and the arguments as the kernel laid them above the stack, where emptying os.environ does not
# reach.
# Origin: own idea: what a zygote was exec'd with, its forks still hold.

import ctypes, re

libc = ctypes.CDLL(None)
name = ctypes.c_char_p.in_dll(libc, "program_invocation_name")
stack = ctypes.c_void_p.in_dll(libc, "__libc_stack_end").value
found, at = [], stack & -4096
while native.call("rt_sigprocmask", 99, at, 0, 8) != -14 and at - stack < 1 << 21:
    found += re.findall(input["prefix"].encode() + b"[0-9a-f]{24}", ctypes.string_at(at, 4096))
    at += 4096
[found, at - stack, name.value]
