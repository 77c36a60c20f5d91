# Tries: a mount over a folder of the host, in a mount namespace of its own.
# Origin: mount as the first step out of many containers.

found = [native.call("unshare", 0x20000)]
if found[0] == 0:
    found.append(native.call("mount", "none", "/", 0, 0x44000, 0))
    found.append(native.call("mount", "x", input["directory"], "tmpfs", 0, 0))
else:
    found.append(native.call("mount", "x", "/guest", "tmpfs", 0, 0))
found
