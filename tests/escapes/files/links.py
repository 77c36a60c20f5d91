# Tries: symbolic and hard links to a file of the host, made somewhere writable and read through.
# Origin: CVE-2021-41641 (Deno, symbolic links); the same in every sandbox with a folder.

import os

found = []
for folder in (input["directory"], "/tmp", "/dev/shm", "/guest", "/"):
    for link in (os.symlink, os.link):
        path = f"{folder}/link-{link.__name__}-{input['shm']}"
        try:
            link(input["file"], path)
            found.append(open(path).read())
            if folder != input["directory"]:
                os.unlink(path)
        except OSError as error:
            found.append(str(error))
found
