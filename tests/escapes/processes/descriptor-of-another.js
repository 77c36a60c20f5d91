// Tries: pidfd_getfd: a copy of a descriptor out of another process.
// Origin: pidfd_getfd(2) with PTRACE_MODE_ATTACH; own idea.

const file = native.call("pidfd_open", input.pid, 0);
const found = [file];
for (const target of [0, 1, 2, 3, 4, 5]) {
  const copy = native.call("pidfd_getfd", file, target, 0);
  found.push(copy);
  if (copy >= 0) found.push(native.call("unshare", 0x4000000));
}
return found;
