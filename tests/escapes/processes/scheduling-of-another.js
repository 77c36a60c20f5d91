// Tries: sched_setaffinity and sched_setscheduler aimed at a process of the host.
// Origin: design.md §3 names it: a guest that slows its host down.

return [native.call("sched_setaffinity", input.pid, 8, new BigUint64Array([1n])), native.call("sched_setscheduler", input.pid, 5, new Int32Array([0]))];
