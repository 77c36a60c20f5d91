# Tries: a performance counter, a clock without rounding and a bug-rich call.
# Origin: CVE-2013-2094, CVE-2023-5717.

import struct

native.call("perf_event_open", struct.pack("II", 1, 128) + bytes(120), 0, -1, -1, 0)
