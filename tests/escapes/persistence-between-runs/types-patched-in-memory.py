# Tries: a method put on a built-in type by writing to its dictionary in memory, and an interned text overwritten.
# Origin: forbiddenfruit; the objects of a zygote are shared until they are written to.

import ctypes, gc

space = gc.get_referents(str.__dict__)[0]
if input["round"] == 1:
    space["planted"] = input["plant"]
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(str))
getattr("", "planted", None)
