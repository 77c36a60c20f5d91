# Tries: a seccomp filter of the program's own with a listener, through which it would answer system calls itself.
# Origin: SECCOMP_RET_USER_NOTIF as a debugger (2019); own idea.

import struct

allow = native.address(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
native.call("prctl", 38, 1, 0, 0, 0)
native.call("seccomp", 1, 8, struct.pack("HHIQ", 1, 0, 0, allow))
