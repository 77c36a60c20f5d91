# Tries: setpriority and ioprio_set aimed at a process of the host.
# Origin: design.md names it: a guest that slows its host down.

import os

found = [native.call("setpriority", 0, input["pid"], 15), native.call("ioprio_set", 1, input["pid"], 3 << 13)]
try:
    found.append(os.setpriority(os.PRIO_PROCESS, input["pid"], 15))
except OSError as error:
    found.append(str(error))
found
