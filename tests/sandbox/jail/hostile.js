// A program with every permission that Deno has, which tries to break out: only the jail holds it.
// Its argument is JSON: {paths, folders, secret, victim, port, socket, calls}. It prints one JSON line for each attempt.

const plan = JSON.parse(Deno.args[0]);
const out = new TextEncoder();

function report(name, won, detail) {
  Deno.stdout.writeSync(out.encode(JSON.stringify({ name, won, detail: String(detail).slice(0, 200) }) + "\n"));
}

async function attempt(name, action) {
  try {
    const detail = await action();
    report(name, detail !== false, detail);
  } catch (error) {
    report(name, false, error);
  }
}

const libc = Deno.dlopen("libc.so.6", {
  syscall: { parameters: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
  __errno_location: { parameters: [], result: "pointer" },
});

function syscall(number, ...args) {
  const full = [...args, 0, 0, 0, 0, 0, 0].slice(0, 6);
  const result = Number(libc.symbols.syscall(BigInt(number), ...full.map(BigInt)));
  const errno = new Deno.UnsafePointerView(libc.symbols.__errno_location()).getInt32();
  return result < 0 ? -errno : result;
}

const kept = [];
function pointer(value) {
  const bytes = typeof value === "string" ? out.encode(value + "\0") : new Uint8Array(value);
  kept.push(bytes);
  return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
}

// A write beyond the file size limit is then an error and does not end the process.
Deno.addSignalListener("SIGXFSZ", () => {});

// ── the tools of the attempts work ──
await attempt("alive: raw system calls", () => syscall(plan.getpid) > 0 && "yes");

// ── files ──
for (const path of plan.paths) {
  await attempt(`read ${path}`, () => {
    using file = Deno.openSync(path);
    return file.readSync(new Uint8Array(16)) ?? "empty";
  });
  await attempt(`list ${path}`, () => [...Deno.readDirSync(path)].length);
}
await attempt("read the secret file", () => Deno.readTextFileSync(plan.secret).includes("canary") && "canary");
for (const folder of plan.folders) {
  const spot = `${folder}/gloveport-mark`;
  await attempt(`write into ${folder}`, () => Deno.writeTextFileSync(spot, "mark"));
  await attempt(`make a folder in ${folder}`, () => Deno.mkdirSync(`${spot}-folder`));
  await attempt(`symlink in ${folder}`, () => Deno.symlinkSync(plan.secret, `${spot}-symlink`));
  await attempt(`hard link in ${folder}`, () => Deno.linkSync(plan.secret, `${spot}-link`));
}
await attempt("overwrite the secret file", () => Deno.writeTextFileSync(plan.secret, "canary, overwritten"));
await attempt("change the mode of the secret file", () => Deno.chmodSync(plan.secret, 0o600));
await attempt("rename the secret file", () => Deno.renameSync(plan.secret, `${plan.secret}.moved`));
await attempt("remove the secret file", () => Deno.removeSync(`${plan.secret}.moved`));

// ── network ──
await attempt("tcp connect", async () => (await Deno.connect({ port: plan.port, hostname: "127.0.0.1" })).close());
await attempt("tcp listen", () => Deno.listen({ port: 0, hostname: "127.0.0.1" }).close());
await attempt("unix connect", async () => (await Deno.connect({ path: plan.socket, transport: "unix" })).close());
await attempt("udp listen", () => Deno.listenDatagram({ port: 0, hostname: "127.0.0.1", transport: "udp" }).close());
await attempt("fetch", async () => (await fetch(`http://127.0.0.1:${plan.port}/`)).status);
await attempt("resolve a name", async () =>
  (await Deno.resolveDns("name.test", "A", {
    nameServer: { ipAddr: "127.0.0.1", port: plan.dns },
  })).length);

// ── environment and descriptors ──
await attempt("environment", () => Deno.env.get("GLOVEPORT_CANARY") ?? false);
await attempt("the name of the host", () => Deno.hostname() === plan.hostname && plan.hostname);
await attempt("inherited descriptors", () => {
  const buffer = new Uint8Array(64);
  const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(buffer));
  for (let fd = 3; fd < 256; fd++) {
    buffer.fill(0);
    if (syscall(plan.pread64, fd, address, 64) > 0 && new TextDecoder().decode(buffer).includes("canary")) return fd;
  }
  return false;
});

// ── processes ──
await attempt("spawn a process", () => new Deno.Command("/bin/true").outputSync().success);
await attempt("spawn a shell", () => new Deno.Command("sh", { args: ["-c", "exit 0"] }).outputSync().success);
await attempt("a signal to a host process", () => Deno.kill(plan.victim, "SIGURG"));
await attempt("a signal to the parent", () => Deno.ppid > 0 && (Deno.kill(Deno.ppid, "SIGURG"), Deno.ppid));
await attempt("fork", () => {
  const pid = syscall(plan.clone, 17);
  if (pid === 0) syscall(plan.exit_group, 0);
  return pid > 0 && pid;
});
for (const [name, number, ...args] of plan.calls) {
  await attempt(name, () => {
    const result = syscall(number, ...args.map((a) => (typeof a === "number" ? a : pointer(a))));
    return result >= 0 ? result : (report(`errno ${name}`, false, -result), false);
  });
}
await attempt("kill a host process", () => Deno.kill(plan.victim, "SIGKILL"));
report("end", false, "");
Deno.exit(0);
