// Tries: openat2 with every resolve flag, O_PATH descriptors re-opened through /proc/self/fd, and O_TMPFILE.
// Origin: CVE-2024-21626 (leaked directory descriptors); openat2(2).

const how = new BigUint64Array(3);
const found = [];
for (const resolve of [0n, 1n, 8n, 16n]) {
  how[2] = resolve;
  const file = native.call("openat2", -100, input.file, how, 24);
  const bytes = new Uint8Array(200);
  found.push(file, native.call("read", file, bytes, 200), native.text(bytes));
}
const path = native.call("openat", -100, input.file, 0o10000000, 0);
const again = native.call("openat", -100, `/proc/self/fd/${path}`, 0, 0);
const bytes = new Uint8Array(200);
found.push(path, again, native.call("read", again, bytes, 200), native.text(bytes));
return found;
