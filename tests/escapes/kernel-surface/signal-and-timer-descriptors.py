# Tries: signalfd and timerfd, calls that an interpreter does not need.
# Origin: allow-lists against the calls that nobody thought of; CVE-2017-10661 (timerfd).

[native.call("signalfd4", -1, bytes(8), 8, 0), native.call("timerfd_create", 1, 0)]
