# Tries: memory files of every kind, which no limit on data counts.
# Origin: memfd_create, memfd_secret; own idea.

[native.call("memfd_create", "x", 0), native.call("memfd_create", "x", 4), native.call("memfd_secret", 0)]
