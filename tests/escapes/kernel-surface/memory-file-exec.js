// Tries: a program in a memory file, run with execveat: no file system is asked.
// Origin: fileless malware; memfd_create + fexecve.
// machine: x86_64

function run(bytes, ...args) {
  const memory = native.call("mmap", 0, 4096, 7, 0x22, -1, 0);
  new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(memory)), 4096)).set(bytes);
  return Number(native.execute(memory, args.map(() => "i64"), ...args.map(BigInt)));
}
const status = new Int32Array(1);

const file = native.call("memfd_create", "x", 0);
const script = new TextEncoder().encode(`#!/bin/sh\necho written > '${input.write}'\n`);
native.call("write", file, script, script.length);
// r10 = rcx; fork(); in the child: execveat(file, "", argv, envp, AT_EMPTY_PATH), exit()
const code = [0x49, 0x89, 0xca, 0xb8, 57, 0, 0, 0, 0x0f, 5, 0x85, 0xc0, 0x75, 14, 0xb8, 0x42, 1, 0, 0, 0x0f, 5, 0xb8, 60, 0, 0, 0, 0x0f, 5, 0xc3];
const argv = new BigUint64Array([native.address("x"), 0n].map(BigInt));
const pid = run(code, file, native.address(""), native.address(argv), native.address(new BigUint64Array(1)), 0x1000);
return [file, pid, native.call("wait4", pid, status, 0, 0), status[0]];
