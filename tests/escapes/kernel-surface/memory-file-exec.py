# Tries: a program in a memory file, run with execveat: no file system is asked.
# Origin: fileless malware; memfd_create and fexecve.

import ctypes

script = f"#!/bin/sh\necho written > '{input['write']}'\n".encode()
file = native.call("memfd_create", "x", 0)
found = [file, native.call("write", file, script, len(script))]
words = (ctypes.c_char_p * 2)(b"x", None)
found.append(native.call("execveat", file, "", words, (ctypes.c_char_p * 1)(None), 0x1000))
found
