# Tries: a port of its own, at which the program waits for whoever comes.
# Origin: bind shells.

import socket

made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
made.bind(("127.0.0.1", 0))
made.listen()
native.kept.append(made)
