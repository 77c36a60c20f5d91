// Tries: memory offered to the kernel to be merged with equal pages of others, whose contents the time of a write tells.
// Origin: side channels by memory deduplication (Suzaki 2011, "Dedup Est Machina" 2016).

const size = 1 << 16;
const where = native.call("mmap", 0, size, 3, 0x22, -1, 0);
return [native.call("madvise", where, size, 12), native.call("prctl", 67, 1, 0, 0, 0)];
