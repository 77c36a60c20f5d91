# Tries: functions by dotted names in text, with what the library has for plugins and help.
# Origin: pydoc.locate and pkgutil.resolve_name on untrusted names.

import pkgutil, pydoc, importlib

found = []
for resolve in (pydoc.locate, pkgutil.resolve_name, lambda name: getattr(importlib.import_module("i" + "o"), "open")):
    found.append(resolve("io.open")(input["file"]).read())
found
