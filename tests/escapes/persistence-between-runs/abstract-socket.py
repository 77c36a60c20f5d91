# Tries: a socket with an abstract name that is left listening, and found by another run.
# Origin: S16; CVE-2020-15257.

import builtins, socket

address = "\0" + input["name"]
if input["round"] == 1:
    builtins.left_open = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    builtins.left_open.bind(address)
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.sendto(input["plant"].encode(), address)
    found = None
else:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", address)
    found = builtins.left_open.recv(100)
found
