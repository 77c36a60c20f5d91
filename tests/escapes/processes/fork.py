# Tries: a copy of the process by os.fork, which goes on when the program has ended, and writes.
# Origin: S10; daemons.

import os

pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork() == 0:
        open(input["write"], "w").write("written")
    os._exit(0)
os.waitpid(pid, 0)
