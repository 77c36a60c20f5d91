// Tries: a thousand threads, each of which takes a process id of the host.
// Origin: fork bombs by threads; RLIMIT_NPROC counts per user.

const libc = Deno.dlopen("libc.so.6", {
  pthread_create: { parameters: ["buffer", "buffer", "pointer", "pointer"], result: "i32" },
  pthread_attr_init: { parameters: ["buffer"], result: "i32" },
  pthread_attr_setstacksize: { parameters: ["buffer", "usize"], result: "i32" },
  pause: { parameters: [], result: "i32" },
});
const attributes = new Uint8Array(64);
libc.symbols.pthread_attr_init(attributes);
libc.symbols.pthread_attr_setstacksize(attributes, 65536n);
const pointer = Deno.dlopen("libc.so.6", { pause: { type: "pointer" } });
let made = 0;
for (let turn = 0; turn < 1000; turn++) {
  const thread = new BigUint64Array(1);
  const start = Deno.UnsafePointer.create(BigInt(native.symbol?.("pause") ?? 0)) ?? pauseAddress();
  if (libc.symbols.pthread_create(thread, attributes, start, null) === 0) made++;
}
function pauseAddress() {
  const dl = Deno.dlopen("libc.so.6", { dlsym: { parameters: ["pointer", "buffer"], result: "pointer" } });
  return dl.symbols.dlsym(null, new TextEncoder().encode("pause\0"));
}
return [made, typeof pointer];
