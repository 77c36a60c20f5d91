// Tries: setns into the namespaces of a process of the host.
// Origin: nsenter; CVE-2024-21626.

const found = [];
const pidfd = native.call("pidfd_open", input.pid, 0);
found.push(pidfd, native.call("setns", pidfd, 0x4000000));
for (const kind of ["uts", "mnt", "net", "user"]) {
  const file = native.call("openat", -100, `/proc/${input.pid}/ns/${kind}`, 0, 0);
  found.push(file, file < 0 ? 0 : native.call("setns", file, 0));
}
return found;
