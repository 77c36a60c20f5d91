# Tries: a raw ICMP socket, and the one for pings.
# Origin: CAP_NET_RAW in containers.

[native.call("socket", 2, 3, 1), native.call("socket", 2, 2, 1)]
