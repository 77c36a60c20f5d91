# Tries: a socket by the table of C functions that the socket module hands to others in a capsule.
# Origin: own idea: capsules are pointers that a program can hold.

import _socket, ctypes

get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
table = get(_socket.CAPI, b"_socket.CAPI")
kind = ctypes.cast(ctypes.c_void_p(table), ctypes.POINTER(ctypes.py_object))[0]
made = kind(_socket.AF_INET, _socket.SOCK_STREAM)
made.connect(("127.0.0.1", input["tcp"]))
made.recv(100)
