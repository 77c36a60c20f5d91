# Tries: sched_setaffinity, sched_setscheduler and sched_setattr aimed at a process of the host.
# Origin: design.md names it.

import os, struct

found = [native.call("sched_setattr", input["pid"], struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0)]
for set_ in (
    lambda: os.sched_setaffinity(input["pid"], {0}),
    lambda: os.sched_setscheduler(input["pid"], os.SCHED_IDLE, os.sched_param(0)),
):
    try:
        found.append(set_())
    except OSError as error:
        found.append(str(error))
found
