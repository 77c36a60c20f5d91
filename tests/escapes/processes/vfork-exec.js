// Tries: vfork and exec of another program in the child, by machine code of its own.
// Origin: S10: payloads after an engine has fallen; moby#42680 on clone3 and filters.
// machine: x86_64

function run(bytes, ...args) {
  const memory = native.call("mmap", 0, 4096, 7, 0x22, -1, 0);
  new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(memory)), 4096)).set(bytes);
  return Number(native.execute(memory, args.map(() => "i64"), ...args.map(BigInt)));
}
const status = new Int32Array(1);

// vfork(); in the child: execve(path, argv, envp), exit()
const code = [0xb8, 58, 0, 0, 0, 0x0f, 5, 0x85, 0xc0, 0x75, 14, 0xb8, 59, 0, 0, 0, 0x0f, 5, 0xb8, 60, 0, 0, 0, 0x0f, 5, 0xc3];
const argv = new BigUint64Array([native.address("touch"), native.address(input.write), 0n].map(BigInt));
const pid = run(code, native.address("/bin/touch"), native.address(argv), native.address(new BigUint64Array(1)));
return [pid, native.call("wait4", pid, status, 0, 0), status[0]];
