# Tries: the processor time of another process, to the nanosecond: what it does with a secret shows in it.
# Origin: own idea: a clock's number can be made of any process's, and no permission is asked for.

import ctypes, time


def read(number):
    spot = (ctypes.c_long * 2)()
    for name in ("clock_gettime", "clock_getres"):
        native.call(name, number, spot)
        yield spot[0] * 10**9 + spot[1]


found = [list(read((~input["pid"] << 3) | kind)) for kind in (0, 1, 2)]
for clock in (time.clock_gettime_ns, time.clock_getres):
    try:
        found.append(clock((~input["pid"] << 3) | 2))
    except OSError as error:
        found.append(str(error))
found
