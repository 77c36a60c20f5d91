// Tries: the host's files by way of /proc/self/root, /proc/self/cwd, /proc/1/root and /dev/fd.
// Origin: container escapes by /proc (CVE-2019-5736, CVE-2024-21626).

const found = [];
for (const prefix of ["/proc/self/root", "/proc/thread-self/root", "/proc/1/root", "/proc/self/cwd/../../../../../..", "/dev/fd/0/../../.."]) {
  try {
    found.push(Deno.readTextFileSync(prefix + input.file));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
