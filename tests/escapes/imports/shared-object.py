# Tries: a library from a file of its own making: bytes written somewhere, then loaded as an extension module.
# Origin: _imp.create_dynamic and ctypes.CDLL with a path; fileless loading by memfd.

import ctypes, os
from importlib.machinery import ExtensionFileLoader, ModuleSpec

found = []
libraries = [line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line] if os.path.exists("/proc/self/maps") else ["/lib/x86_64-linux-gnu/libc.so.6"]
for place in (input["write"], f"/tmp/{input['name']}", f"/dev/shm/{input['name']}"):
    try:
        with open(libraries[0], "rb") as source, open(place, "wb") as target:
            target.write(source.read())
        found.append(ctypes.CDLL(place).getpid())
    except Exception as error:
        found.append(repr(error))
    finally:
        if place != input["write"] and os.path.exists(place):
            os.unlink(place)
try:
    spec = ModuleSpec("x", ExtensionFileLoader("x", input["write"]), origin=input["write"])
    __import__("_imp").create_dynamic(spec)
except Exception as error:
    found.append(repr(error))
found
