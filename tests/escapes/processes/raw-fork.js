// Tries: fork by a raw clone; the child writes a file and ends.
// Origin: S10: payloads after an engine has fallen.
// machine: x86_64

function run(bytes, ...args) {
  const memory = native.call("mmap", 0, 4096, 7, 0x22, -1, 0);
  new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(memory)), 4096)).set(bytes);
  return Number(native.execute(memory, args.map(() => "i64"), ...args.map(BigInt)));
}
const status = new Int32Array(1);

// fork(); in the child: creat(path, 0666), exit()
const code = [0xb8, 57, 0, 0, 0, 0x0f, 5, 0x85, 0xc0, 0x75, 21, 0xb8, 85, 0, 0, 0, 0xbe, 0xb6, 1, 0, 0, 0x0f, 5, 0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 5, 0xc3];
const pid = run(code, native.address(input.write));
return [pid, native.call("wait4", pid, status, 0, 0), status[0]];
