# Tries: a zip archive written beside the host's files, and a module imported out of it.
# Origin: zipimport; wheels as payloads.

import sys, zipfile, zipimport

with zipfile.ZipFile(input["write"], "w") as archive:
    archive.writestr("packed.py", "word = 1")
zipimport.zipimporter(input["write"]).load_module("packed").word
