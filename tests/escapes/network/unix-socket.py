# Tries: a UNIX socket of the host by its path, as those of Docker and of agents for keys are.
# Origin: /var/run/docker.sock.

import socket

made = socket.socket(socket.AF_UNIX)
made.connect(input["unix"])
made.recv(10)
