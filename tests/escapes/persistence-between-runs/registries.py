# Tries: the registries of the library: codecs, copyreg, abstract classes, MIME types, warnings, single dispatch.
# Origin: own idea: global tables that nobody resets.

import codecs, copyreg, mimetypes, warnings

found = []
if input["round"] == 1:
    plant = input["plant"]
    codecs.register(lambda name: (_ for _ in ()).throw(LookupError(plant)) if name == "planted" else None)
    copyreg.dispatch_table[type(iter([]))] = plant
    mimetypes.add_type(plant, ".planted")
    warnings.filters.append(plant)
try:
    "".encode("planted")
except LookupError as error:
    found.append(str(error))
[*found, copyreg.dispatch_table.get(type(iter([]))), mimetypes.guess_type("x.planted"), str(warnings.filters[-1])]
