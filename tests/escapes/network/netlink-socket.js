// Tries: a netlink socket, which speaks to the kernel's network tables.
// Origin: netfilter exploits behind AF_NETLINK (CVE-2022-34918).

const socket = native.call("socket", 16, 3, 0);
return [socket, native.call("bind", socket, new Uint8Array([16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 12)];
