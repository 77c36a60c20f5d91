# Tries: a child on a terminal of its own.
# Origin: pty.spawn, the second line of every reverse shell.

import os, pty

pid, master = pty.fork()
if pid == 0:
    os.execlp("touch", "touch", input["write"])
os.waitpid(pid, 0)
