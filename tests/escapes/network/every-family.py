# Tries: a socket of every family that the kernel might have, of every type.
# Origin: own idea: allow-lists that think of the families one uses.

[native.call("socket", family, kind, 0) for family in range(2, 50) for kind in (1, 2, 3, 5)]
