# Tries: a file of the host, by every opener of the language and its library.
# Origin: the plain one; smolagents' list of dangerous modules.

import io, os, pathlib, codecs, linecache, tokenize, fileinput, mmap
from importlib.machinery import SourceFileLoader

found = []
for read in (
    lambda path: open(path).read(),
    lambda path: os.read(os.open(path, os.O_RDONLY), 200),
    lambda path: io.FileIO(path).read(),
    lambda path: pathlib.Path(path).read_text(),
    lambda path: codecs.open(path).read(),
    lambda path: linecache.getlines(path),
    lambda path: tokenize.open(path).read(),
    lambda path: list(fileinput.input([path])),
    lambda path: SourceFileLoader("x", path).get_data(path),
    lambda path: mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:],
):
    try:
        found.append(str(read(input["file"])))
    except Exception as error:
        found.append(repr(error))
found
