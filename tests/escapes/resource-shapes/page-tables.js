// Tries: memory that no process seems to hold: one page is read in each two megabytes of an empty mapping, which costs
// the kernel a page table each time, and the process nothing.
// Origin: own idea: neither RLIMIT_DATA nor the resident size counts page tables.

const step = 2 << 20;
const count = 170000;
const where = native.call("mmap", 0, step * count, 1, 0x4022, -1, 0);
native.call("madvise", where, step * count, 15);
let at = 0;
for (const memory = native.at(where); where > 0 && at < count; at++) memory.getUint8(at * step);
return [where > 0, at];
