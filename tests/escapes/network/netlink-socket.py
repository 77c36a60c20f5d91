# Tries: a netlink socket, which speaks to the kernel's network tables.
# Origin: netfilter exploits behind AF_NETLINK (CVE-2022-34918).

import socket

made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
made.bind((0, 0))
native.kept.append(made)
