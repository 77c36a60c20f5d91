// Tries: a shared futex on libc, which a process outside maps too: to wake that process is one bit a call.
// Origin: own idea: the kernel names a shared futex by its file, and asks for no permission to write.

const place = input.futexes[0];
const library = native.call("openat", -100, input.library, 0, 0);
const page = native.call("mmap", 0, 4096, 1, 2, library, place - place % 4096);
const found = [];
for (let round = 0; round < 50; round++) {
  found.push(native.call("futex", page + place % 4096, 1, 100));
  native.call("nanosleep", new BigInt64Array([0n, 5000000n]), 0);
}
return found;
