# Tries: renaming, copying and replacing files of the host.
# Origin: the rest of the file API.

import os, shutil

found = []
for change in (
    lambda: shutil.copy(input["module"], input["write"]),
    lambda: os.rename(input["module"], input["directory"] + "/renamed"),
    lambda: os.truncate(input["json"], 0),
    lambda: os.chmod(input["json"], 0),
    lambda: os.utime(input["json"], (1, 1)),
    lambda: os.setxattr(input["json"], "user.x", b"x"),
):
    try:
        found.append(change())
    except OSError as error:
        found.append(str(error))
found
