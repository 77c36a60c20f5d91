# Tries: a file in a folder of the host that everybody may write to.
# Origin: the plain one.

import os, pathlib

found = []
for write in (
    lambda path: open(path, "w").write("written"),
    lambda path: os.write(os.open(path, os.O_CREAT | os.O_WRONLY), b"written"),
    lambda path: pathlib.Path(path).touch(),
    lambda path: os.mkdir(path + "-folder"),
    lambda path: os.mkfifo(path + "-pipe"),
):
    try:
        found.append(write(input["write"]))
    except OSError as error:
        found.append(str(error))
found
