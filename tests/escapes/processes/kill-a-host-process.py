# Tries: a signal to a process of the host, by every call there is for one.
# Origin: the plain one; rt_sigqueueinfo, tgkill and pidfd_send_signal are what filters forget.

import os, signal, struct

found, pid = [], input["pid"]
info = struct.pack("iii", 9, 0, -1) + bytes(116)
for send in (
    lambda: native.call("rt_sigqueueinfo", pid, 9, info),
    lambda: native.call("tgkill", pid, pid, 9),
    lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9),
    lambda: os.kill(pid, 9),
):
    try:
        found.append(send())
    except OSError as error:
        found.append(str(error))
os.stat("/")
found
