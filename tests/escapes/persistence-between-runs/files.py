# Tries: files in every place that could be writable: the working folder, temporary folders, shared memory, home.
# Origin: S16; the plain one.

import os

name = f"planted-{input['shm']}"
folders = [input["directory"], os.getcwd(), "/tmp", "/var/tmp", "/dev/shm", "/run", "/guest", "/", os.path.expanduser("~")]
found = []
for folder in folders:
    try:
        if input["round"] == 1:
            with open(f"{folder}/{name}", "w") as file:
                file.write(input["plant"])
        else:
            found.append(open(f"{folder}/{name}").read())
            os.unlink(f"{folder}/{name}")
    except OSError as error:
        found.append(str(error))
found
