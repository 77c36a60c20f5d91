// Tries: chroot with a directory held open outside of it, and out again by dots.
// Origin: the classic chroot break.

const found = [native.call("unshare", 0x200), native.call("chroot", input.directory)];
const bytes = new Uint8Array(200);
for (const path of ["/canary", "../../../../../../../../canary"]) {
  const file = native.call("openat", -100, path, 0, 0);
  found.push(file, native.call("read", file, bytes, 200));
}
found.push(native.text(bytes));
return found;
