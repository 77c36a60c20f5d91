# Tries: a key in the keyring of the process, the session or the user, read by another run.
# Origin: CVE-2016-0728's keyrings; own idea.

into = native.buffer(200)
found = []
for ring in (-5, -3, -2):
    if input["round"] == 1:
        found.append(native.call("add_key", "user", input["key"] + "-run", input["plant"].encode(), len(input["plant"]), ring))
    else:
        key = native.call("keyctl", 10, ring, "user", input["key"] + "-run", 0)
        found += [key, native.call("keyctl", 11, key, into, 200), into.value, native.call("keyctl", 9, key, ring)]
found
