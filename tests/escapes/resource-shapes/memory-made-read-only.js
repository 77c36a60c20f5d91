// Tries: memory that is filled and then made read-only, after which the limit on data forgets it.
// Origin: own idea: mprotect takes pages out of the count.

const size = 80 << 20;
const found = [];
for (let block = 0; block < 10; block++) {
  const where = native.call("mmap", 0, size, 3, 0x8022, -1, 0);
  found.push(where > 0 && native.call("mprotect", where, size, 1));
}
return found;
