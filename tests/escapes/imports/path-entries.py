# Tries: a folder of the host put on sys.path, and its modules imported by name.
# Origin: search-path hijacking, turned round.

import sys

sys.path.insert(0, input["directory"])
sys.path_importer_cache.clear()
__import__("canary").word
