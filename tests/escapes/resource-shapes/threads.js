// Tries: thousands of threads that only wait, each of which takes a process id of the host and a stack of its kernel.
// Origin: fork bombs by threads; RLIMIT_NPROC counts per user, and where a guest has no user of its own it can't be set.

const libc = Deno.dlopen("libc.so.6", {
  pthread_create: { parameters: ["buffer", "buffer", "pointer", "usize"], result: "i32" },
  pthread_attr_init: { parameters: ["buffer"], result: "i32" },
  pthread_attr_setstacksize: { parameters: ["buffer", "usize"], result: "i32" },
  dlsym: { parameters: ["pointer", "buffer"], result: "pointer" },
});
const { pthread_create, pthread_attr_init, pthread_attr_setstacksize, dlsym } = libc.symbols;
const attributes = new Uint8Array(64);
pthread_attr_init(attributes);
pthread_attr_setstacksize(attributes, 16384n);
const sleep = dlsym(null, new TextEncoder().encode("sleep\0"));
let made = 0;
while (made < 3000 && pthread_create(new BigUint64Array(1), attributes, sleep, 1000n) === 0) made++;
return made;
