// Tries: prlimit64 aimed at a process of the host: its descriptors are taken away.
// Origin: design.md §3 names it; prlimit needs only the same user.

return native.call("prlimit64", input.pid, 7, new BigUint64Array([3n, 3n]), 0);
