# Tries: ptrace: attach to a process of the host, and end it.
# Origin: CVE-2019-13272 and every ptrace escape.

found = [native.call("ptrace", 16, input["pid"], 0, 0)]
native.call("nanosleep", __import__("struct").pack("qq", 0, 30_000_000), 0)
found.append(native.call("ptrace", 8, input["pid"], 0, 0))
found.append(native.call("ptrace", 0x4206, input["pid"], 0, 0x100000))
found
