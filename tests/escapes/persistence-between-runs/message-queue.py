# Tries: a POSIX message queue, in which a message waits for the next run.
# Origin: S16; mq_open.

import struct

attributes = struct.pack("qqqq", 0, 1, 100, 0) + bytes(32)
queue = native.call("mq_open", input["name"], 0o4102, 0o600, attributes)
into = native.buffer(100)
if input["round"] == 1:
    found = native.call("mq_timedsend", queue, input["plant"].encode(), len(input["plant"]), 0, 0)
else:
    found = [native.call("mq_timedreceive", queue, into, 100, 0, 0), into.value, native.call("mq_unlink", input["name"])]
[queue, found]
