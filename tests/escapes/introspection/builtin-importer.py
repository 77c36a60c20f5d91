# Tries: the importer of built-in modules, taken from the list of all classes, to load a module that was never imported.
# Origin: pyjail collections; BuiltinImporter.load_module.

importer = next(kind for kind in object.__subclasses__() if kind.__name__ == "BuiltinImporter")
posix = importer.load_module("posix")
posix.read(posix.open(input["file"], posix.O_RDONLY), 200)
