// Tries: ptrace: attach to a process of the host, and end it.
// Origin: CVE-2019-13272 and every ptrace escape.

const found = [native.call("ptrace", 16, input.pid, 0, 0)];
await new Promise((resolve) => setTimeout(resolve, 20));
found.push(native.call("ptrace", 8, input.pid, 0, 0), native.call("ptrace", 0x4206, input.pid, 0, 0x100000));
await new Promise((resolve) => setTimeout(resolve, 50));
return found;
