# Tries: the text of a symbolic link on the host, which is read without opening anything.
# Origin: own idea: Landlock does not govern readlink.

import os

found = []
for read in (
    lambda: os.readlink(input["link"]),
    lambda: os.path.realpath(input["link"]),
    lambda: native.call("readlinkat", -100, input["link"], buffer := native.buffer(200), 200) and buffer.value,
    lambda: os.readlink(f"/proc/{input['pid']}/cwd"),
):
    try:
        found.append(str(read()))
    except OSError as error:
        found.append(error.strerror)
found
