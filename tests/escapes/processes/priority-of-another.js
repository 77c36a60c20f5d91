// Tries: setpriority aimed at a process of the host, and at all of its user.
// Origin: design.md §3 names it.

return [native.call("setpriority", 0, input.pid, 15)];
