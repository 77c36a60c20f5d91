// What a compromised engine would try, with all of Deno's permissions, inside the jail. Prints one JSON line per attempt.
// An attempt that succeeds returns what it got; a refused one throws. The host also checks its own canaries.

const plan = JSON.parse(Deno.args[0]);
const ATTEMPT_TIMEOUT_MS = 1500;
const encoder = new TextEncoder();

function report(line) {
  const bytes = encoder.encode(JSON.stringify(line) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

async function attempt(name, run) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), ATTEMPT_TIMEOUT_MS);
  });
  try {
    const got = await Promise.race([run(), late]);
    report({ name, escaped: true, detail: `${got}`.slice(0, 200) });
  } catch (error) {
    report({ name, escaped: false, detail: `${error?.message ?? error}`.split("\n")[0].slice(0, 200) });
  } finally {
    clearTimeout(timer);
  }
}

// Returns the result of the first path that can be used; when none can, throws the most informative refusal.
function anyOf(paths, use) {
  const refusals = [];
  for (const path of paths) {
    try {
      return use(path);
    } catch (error) {
      refusals.push(error);
    }
  }
  throw refusals.find((error) => !(error instanceof Deno.errors.NotFound)) ?? refusals[0];
}

// Raw system calls, past everything that the engine checks.
const NUMBERS = {
  x86_64: { clone: 56, execve: 59, exit_group: 231 },
  aarch64: { clone: 220, execve: 221, exit_group: 94 },
};
const SIGCHLD = 17;
let libc = null;

function syscall(name, ...args) {
  libc ??= Deno.dlopen("libc.so.6", {
    syscall: { parameters: ["i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
    __errno_location: { parameters: [], result: "pointer" },
  });
  const words = [NUMBERS[Deno.build.arch][name], ...args, 0, 0, 0, 0, 0].slice(0, 6).map(BigInt);
  const result = libc.symbols.syscall(...words);
  if (result >= 0n) return result;
  const place = libc.symbols.__errno_location();
  throw new Error(`${name}: errno ${new Deno.UnsafePointerView(place).getInt32()}`);
}

function address(bytes) {
  return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
}

function execute(path) {
  const words = [encoder.encode(`${path}\0`), encoder.encode("deno\0"), encoder.encode("--version\0")];
  const argv = new BigInt64Array([BigInt(address(words[1])), BigInt(address(words[2])), 0n]);
  const envp = new BigInt64Array([0n]);
  syscall("execve", address(words[0]), address(new Uint8Array(argv.buffer)), address(new Uint8Array(envp.buffer)));
  return "exec returned without an error";
}

await attempt("tcp", async () => {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: plan.tcp_port });
  await connection.write(encoder.encode("self-test"));
  return `connected to port ${plan.tcp_port}`;
});
await attempt("udp", async () => {
  const socket = Deno.listenDatagram({ hostname: "127.0.0.1", port: 0, transport: "udp" });
  await socket.send(encoder.encode("self-test"), { hostname: "127.0.0.1", port: plan.udp_port, transport: "udp" });
  return `sent to port ${plan.udp_port}`;
});
await attempt("dns", async () => {
  const nameServer = { ipAddr: "127.0.0.1", port: plan.dns_port };
  return `resolved to ${await Deno.resolveDns("canary.example", "A", { nameServer })}`;
});
await attempt("unix-socket", async () => {
  await Deno.connect({ transport: "unix", path: plan.unix_path });
  return `connected to ${plan.unix_path}`;
});
await attempt("canary-file", () => {
  const text = Deno.readTextFileSync(plan.canary_path);
  return text === plan.canary ? "read the canary" : "read something";
});
await attempt("system-file", () =>
  anyOf(["/etc/passwd", "/etc/hostname", "/etc/resolv.conf"], (path) => {
    return `read ${Deno.readTextFileSync(path).length} characters of ${path}`;
  }));
await attempt(
  "proc-environ",
  () =>
    anyOf([`/proc/${plan.host_pid}/environ`, "/proc/1/environ", "/proc/self/environ"], (path) => {
      return `read ${Deno.readTextFileSync(path).length} characters of ${path}`;
    }),
);
await attempt("list-root", () =>
  anyOf(["/", "/tmp", "/home", "/proc"], (path) => {
    return `${path} holds ${[...Deno.readDirSync(path)].map((entry) => entry.name).join(" ") || "nothing"}`;
  }));
await attempt(
  "write-file",
  () =>
    anyOf([plan.write_path, "/self-test", "/tmp/gloveport-self-test", "/dev/shm/gloveport-self-test"], (path) => {
      Deno.writeTextFileSync(path, "self-test");
      return `wrote ${path}`;
    }),
);
await attempt("environment", () => {
  const strange = Object.entries(Deno.env.toObject()).filter(([name, value]) =>
    value === plan.canary || !plan.environment.includes(name)
  );
  if (strange.length === 0) throw new Error("only what it was given");
  return `holds ${strange.map(([name]) => name).join(" ")}`;
});
await attempt("signal", () => {
  if (Deno.pid === plan.host_pid) throw new Error("that number is the guest itself in here");
  Deno.kill(plan.host_pid, "SIGURG");
  return `sent a signal to process ${plan.host_pid}`;
});
await attempt("spawn", () =>
  anyOf(plan.engines, (path) => {
    const { code } = new Deno.Command(path, { args: ["--version"], clearEnv: true, stdin: "inherit" }).outputSync();
    return `started ${path}, which ended with ${code}`;
  }));
await attempt("fork", () => {
  const child = syscall("clone", SIGCHLD);
  if (child === 0n) syscall("exit_group", 0);
  return `forked process ${child}`;
});
// Last: if it succeeds, this script is gone and can't report it, and the host notices the missing line.
await attempt("execve", () => anyOf(plan.engines, execute));
Deno.exit(0);
