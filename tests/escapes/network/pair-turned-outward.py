# Tries: one of a pair of datagram sockets, which may be had, connected to the host instead, or sent from with an
# address.
# Origin: own idea: allow-lists that look at socket() and forget connect() and sendto().

import socket, struct

found = []
one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for address in (input["unix"], "\0" + input["abstract"], input["directory"] + "/none"):
    for reach in (lambda: one.connect(address), lambda: one.sendto(b"x", address), lambda: one.sendmsg([b"x"], [], 0, address)):
        try:
            found.append(reach())
        except OSError as error:
            found.append(str(error))
inet = struct.pack("!HH4s8x", 0, input["udp"], bytes([127, 0, 0, 1]))
address = struct.pack("H", 2) + inet[2:]
own = native.call("socket", 2, 2, 0)
for file in (own, one.fileno(), 0, 1):
    found.append(native.call("sendto", file, b"xxxx", 4, 0x40, address, 16))
found
