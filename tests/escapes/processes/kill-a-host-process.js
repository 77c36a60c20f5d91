// Tries: a signal to a process of the host, by the platform.
// Origin: the plain one.

Deno.kill(input.pid, "SIGKILL");
await new Promise((resolve) => setTimeout(resolve, 50));
return 1;
