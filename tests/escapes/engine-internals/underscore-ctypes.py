# Tries: the C library by the bare _ctypes module: dlopen, dlsym, call_function.
# Origin: deny-lists that name ctypes and forget its lower half (smolagents).

import _ctypes

library = _ctypes.dlopen(None, 2)
_ctypes.call_function(_ctypes.dlsym(library, "system"), (f"echo written > '{input['write']}'".encode(),))
