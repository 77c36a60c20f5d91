# Tries: shared memory, semaphores and message queues of System V, which outlive the process.
# Origin: IPC namespaces exist for them.

key = input["shm"]
[native.call("shmget", key, 4096, 0o1666), native.call("semget", key, 1, 0o1666), native.call("msgget", key, 0o1666)]
