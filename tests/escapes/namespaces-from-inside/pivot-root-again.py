# Tries: pivot_root a second time, on top of the first.
# Origin: runc's games with pivot_root.

found = [native.call("unshare", 0x20000)]
if found[0] == 0:
    found.append(native.call("mount", "none", "/", 0, 0x44000, 0))
    found.append(native.call("mount", input["directory"], input["directory"], 0, 0x1000, 0))
found.append(native.call("pivot_root", input["directory"], input["directory"]))
found
