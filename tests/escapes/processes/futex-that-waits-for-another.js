// Tries: to be woken by a process outside, on a futex in libc, which both map; that somebody waits is a signal, too.
// Origin: own idea: the kernel names a shared futex by its file, and tells who wakes it how many waited.

const place = input.futexes[1];
const library = native.call("openat", -100, input.library, 0, 0);
const page = native.call("mmap", 0, 4096, 1, 2, library, place - place % 4096);
const timeout = new BigInt64Array([2n, 0n]);
return [0, 9].map((operation) =>
  native.call("futex", page + place % 4096, operation, input.values[1], timeout, 0, -1)
);
