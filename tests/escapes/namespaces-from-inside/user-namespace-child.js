// Tries: a child in a user namespace, where it has every capability.
// Origin: CVE-2023-2640 (GameOver(lay)); user namespaces as attack surface.
// machine: x86_64

function run(bytes, ...args) {
  const memory = native.call("mmap", 0, 4096, 7, 0x22, -1, 0);
  new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(memory)), 4096)).set(bytes);
  return Number(native.execute(memory, args.map(() => "i64"), ...args.map(BigInt)));
}

// clone(flags); in the child: nanosleep(time), exit()
const code = [0xb8, 56, 0, 0, 0, 0x49, 0x89, 0xf0, 0x31, 0xf6, 0x31, 0xd2, 0x4d, 0x31, 0xd2, 0x0f, 5, 0x85, 0xc0, 0x75, 19,
  0xb8, 35, 0, 0, 0, 0x4c, 0x89, 0xc7, 0x31, 0xf6, 0x0f, 5, 0xb8, 60, 0, 0, 0, 0x0f, 5, 0xc3];
return run(code, 0x10000000 | 0x20000 | 17, native.address(new BigUint64Array([5n, 0n])));
