# Tries: the functions that stand between a program and its tools, changed for whoever comes next.
# Origin: S16; magecart, for sandboxes.

kind = type(tools)
if input["round"] == 1:
    plant = input["plant"]
    kind.__getattribute__ = lambda self, name: plant if name == "planted_here" else object.__getattribute__(self, name)
try:
    found = tools.planted_here
except Exception as error:
    found = repr(error)
found if isinstance(found, str) else repr(found)
