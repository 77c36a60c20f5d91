# Tries: functions that no name leads to, from the garbage collector's list of objects.
# Origin: pyjail collections: gc.get_objects; gc.unfreeze, because the zygote has frozen its own.

import gc

gc.unfreeze()
found = []
for item in gc.get_objects():
    if type(item).__name__ == "builtin_function_or_method" and item.__name__ == "open" and item.__module__ in ("io", "_io"):
        found.append(item(input["file"]).read())
        break
found
