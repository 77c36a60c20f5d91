# Tries: a file of the host by calls that read it without read: sendfile, copy_file_range, splice, asynchronous I/O.
# Origin: own idea: filters that think of read and write; CVE-2022-0847 (Dirty Pipe) began with splice.

import os, socket, struct

found = []
file = native.call("openat", -100, input["file"], 0, 0)
ours, theirs = socket.socketpair()
ours.setblocking(False)
found.append(native.call("sendfile", theirs.fileno(), file, 0, 200))
pipe = native.buffer(8)
found.append(native.call("pipe2", pipe, 0))
reader, writer = struct.unpack("ii", pipe.raw)
found.append(native.call("splice", file, native.address(bytes(8)), writer, 0, 200, 0))
found.append(native.call("splice", reader, 0, theirs.fileno(), 0, 200, 0))
target = native.call("openat", -100, input["write"], 0o102, 0o644)
found.append(native.call("copy_file_range", file, native.address(bytes(8)), target, 0, 200, 0))
try:
    found.append(ours.recv(400))
except OSError as error:
    found.append(str(error))
found
