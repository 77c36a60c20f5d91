# Tries: a finder in sys.meta_path, which would give the next program the modules that this one likes.
# Origin: S16; import hooks as root kits.

import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "gloveport_asks":
            raise ImportError(Finder.plant)


if input["round"] == 1:
    Finder.plant = input["plant"]
    sys.meta_path.insert(0, Finder)
try:
    __import__("gloveport_asks")
except ImportError as error:
    found = str(error)
found
