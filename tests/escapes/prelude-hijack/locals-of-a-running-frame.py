# Tries: a local variable of the prelude changed while its function runs, by a trace hook and the C interface.
# Origin: debuggers; PyFrame_LocalsToFast.

import ctypes, sys

forged = '["done","error",{"code":"cpu-limit","message":"forged"},{}]'
write_back = getattr(ctypes.pythonapi, "PyFrame_LocalsToFast", None)


def trace(frame, event, argument):
    if frame.f_code.co_name == "send" and event == "line" and frame.f_locals.get("text", "").startswith('["call"'):
        frame.f_locals["text"] = forged
        if write_back:
            write_back(ctypes.py_object(frame), ctypes.c_int(0))
    return trace


sys.settrace(trace)
call = tools.add(1, 2)
sys.settrace(None)
await call
