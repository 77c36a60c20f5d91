// Tries: a segment of System V shared memory, which outlives the process.
// Origin: IPC namespaces exist for it; own idea.

return native.call("shmget", input.shm, 4096, 0o1666);
