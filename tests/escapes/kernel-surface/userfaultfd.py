# Tries: userfaultfd, which holds the kernel still in the middle of a copy.
# Origin: the pause button of a decade of heap exploits.

[native.call("userfaultfd", 0), native.call("userfaultfd", 1)]
