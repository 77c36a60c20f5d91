# Tries: a module from a file of the host, by the import system's own machinery.
# Origin: importlib.util.spec_from_file_location, as plugin loaders use it.

import importlib.util, importlib.machinery

found = []
for make in (
    lambda: importlib.util.spec_from_file_location("canary", input["python"]),
    lambda: importlib.machinery.PathFinder.find_spec("canary", [input["directory"]]),
    lambda: importlib.machinery.FileFinder(input["directory"], (importlib.machinery.SourceFileLoader, [".py"])).find_spec("canary"),
):
    try:
        spec = make()
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(module.word)
    except Exception as error:
        found.append(repr(error))
found
