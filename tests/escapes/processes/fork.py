# Tries: a copy of the process by os.fork, in a session of its own, which goes on when the program has ended, and writes.
# Origin: S10; daemons.

import os, socket

ours, theirs = socket.socketpair()
pid = os.fork()
if pid == 0:
    os.setsid()
    if os.fork() == 0:
        open(input["write"], "w").write("written")
        theirs.send(b"x")
    os._exit(0)
os.waitpid(pid, 0)
ours.recv(1)
