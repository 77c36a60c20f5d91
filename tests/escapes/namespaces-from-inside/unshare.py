# Tries: namespaces of its own, in which a program would be root: mount, network, IPC, UTS, cgroup, user.
# Origin: CVE-2022-0185, CVE-2022-0492 and CVE-2022-34918 start with unshare.

[native.call("unshare", flag) for flag in (0x20000, 0x40000000, 0x8000000, 0x4000000, 0x2000000)]
