# Tries: the interpreter's own C interface: text to run, and objects made from addresses.
# Origin: ctypes.pythonapi in pyjail collections.

import builtins, ctypes

ctypes.pythonapi.PyRun_SimpleString(b"import builtins\nbuiltins.got = open(builtins.input['file']).read()")
again = ctypes.cast(id(builtins), ctypes.py_object).value
[getattr(again, "got", None)]
