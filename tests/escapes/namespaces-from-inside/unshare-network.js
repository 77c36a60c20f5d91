// Tries: fresh network, IPC and UTS namespaces, each a door to kernel code for root in a namespace.
// Origin: CVE-2022-34918 and all of nf_tables.

return [0x40000000, 0x8000000, 0x4000000, 0x2000000].map((flag) => native.call("unshare", flag));
