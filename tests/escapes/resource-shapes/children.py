# Tries: a bomb of processes: children that sleep, until there may be no more.
# Origin: the fork bomb, in small.

import os

found = 0
try:
    for _ in range(40):
        if os.fork() == 0:
            native.call("nanosleep", __import__("struct").pack("qq", 2, 0), 0)
            os._exit(0)
        found += 1
except OSError as error:
    found = str(error)
found
