# Tries: SIGKILL as the signal that says a descriptor is ready, with a process of the host as its owner.
# Origin: own idea: F_SETOWN, F_SETSIG and O_ASYNC; their ioctl forms FIOSETOWN and FIOASYNC.

import fcntl, os, socket, struct

found = []
one, two = socket.socketpair()
for step in (
    lambda: fcntl.fcntl(one, fcntl.F_SETOWN, input["pid"]),
    lambda: fcntl.fcntl(one, 10, 9),
    lambda: fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK),
    lambda: fcntl.ioctl(one, 0x8901, struct.pack("i", input["pid"])),
    lambda: fcntl.ioctl(one, 0x5452, struct.pack("i", 1)),
    lambda: two.send(b"x"),
):
    try:
        found.append(step())
    except OSError as error:
        found.append(str(error))
found
