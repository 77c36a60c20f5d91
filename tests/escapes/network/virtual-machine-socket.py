# Tries: a socket to the machine that this one is a guest of.
# Origin: AF_VSOCK (CVE-2021-26708); hypervisors and sidecars listen there.

native.call("socket", 40, 1, 0)
