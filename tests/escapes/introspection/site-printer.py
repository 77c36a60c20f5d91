# Tries: a file by what prints the licence of Python, which opens whatever its fields say.
# Origin: pyjail collections: license._Printer__filenames.

import _sitebuiltins

printer = _sitebuiltins._Printer("x", "", [], [])
printer._Printer__filenames = [input["file"]]
printer._Printer__setup()
printer._Printer__lines
