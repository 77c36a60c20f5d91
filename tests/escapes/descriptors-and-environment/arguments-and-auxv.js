// Tries: the environment as it lies in the engine's own memory, above its stack.
// Origin: own idea: an emptied environ that still holds the strings.

const found = [];
for (const name of ["environ", "cmdline", "auxv"]) {
  const file = native.call("openat", -100, `/proc/self/${name}`, 0, 0);
  const bytes = new Uint8Array(65536);
  if (file >= 0) found.push(native.text(bytes.subarray(0, Math.max(0, native.call("read", file, bytes, 65536)))));
}
const libc = Deno.dlopen("libc.so.6", { environ: { type: "pointer" } });
const list = new Deno.UnsafePointerView(libc.symbols.environ);
for (let at = 0; at < 100; at++) {
  const item = list.getPointer(at * 8);
  if (item === null) break;
  found.push(Deno.UnsafePointerView.getCString(item));
}
return found;
