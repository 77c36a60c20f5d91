// The plain platform with every permission and no prelude: the control outside of the jail, and the fallen engine inside.
// Says ready, hears one line of JSON {code, dialect, inputs, nonce, calls}, runs the program once for each input, and waits
// to be killed. Whatever arrives at the host is searched for tokens, so nothing here needs to be believed.

const { parse, stringify } = JSON;
const { inspect } = Deno;
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder);
const write = Deno.stdout.writeSync.bind(Deno.stdout);
const read = Deno.stdin.readSync.bind(Deno.stdin);
const Bytes = Uint8Array;
const Chunks = Blob;
const address = URL.createObjectURL.bind(URL);

function say(text) {
  const bytes = encode(text + "\n");
  let sent = 0;
  while (sent < bytes.length) sent += write(new Bytes(bytes.buffer, bytes.byteOffset + sent, bytes.length - sent));
}

function hear() {
  const decoder = new TextDecoder();
  const chunk = new Bytes(65536);
  let text = "";
  while (!text.endsWith("\n")) {
    const size = read(chunk);
    if (size === null) Deno.exit(0);
    text += decoder.decode(chunk.subarray(0, size), { stream: true });
  }
  return parse(text);
}

// Raw system calls, by name: what an attacker has who has taken over the engine.
function makeNative(numbers) {
  const libc = Deno.dlopen("libc.so.6", {
    syscall: { parameters: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
    __errno_location: { parameters: [], result: "pointer" },
  });
  const kept = [];
  const native = {
    address(value) {
      const bytes = typeof value === "string" ? encode(value + "\0") : value;
      kept.push(bytes);
      return Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes));
    },
    call(name, ...args) {
      if (numbers[name] === undefined) throw new Error(`no number for ${name}`);
      const words = [0, 1, 2, 3, 4, 5].map((at) => {
        const given = args[at] ?? 0;
        return typeof given === "object" || typeof given === "string" ? BigInt(native.address(given)) : BigInt(given);
      });
      const result = Number(libc.symbols.syscall(BigInt(numbers[name]), ...words));
      return result < 0 ? -new Deno.UnsafePointerView(libc.symbols.__errno_location()).getInt32() : result;
    },
    text(bytes) {
      return new TextDecoder().decode(bytes).replaceAll("\0", " ");
    },
    at(where) {
      return new Deno.UnsafePointerView(Deno.UnsafePointer.create(BigInt(where)));
    },
    // Calls bytes of machine code.
    execute(where, parameters, ...args) {
      const pointer = Deno.UnsafePointer.create(BigInt(where));
      return new Deno.UnsafeFnPointer(pointer, { parameters, result: "i64" }).call(...args);
    },
  };
  return native;
}

say("ready");
const plan = hear();
globalThis.native = plan.calls ? makeNative(plan.calls) : undefined;
globalThis.emit = (value) => say(inspect(value, { depth: 8, strAbbreviateSize: 100000, iterableLimit: 10000 }));
globalThis.ToolError = class ToolError extends Error {};
globalThis.tools = {
  echo: (given) => Promise.resolve(given?.value),
  add: (a, b) => Promise.resolve(a + b),
  fail: (given) => Promise.reject(Object.assign(new ToolError(given?.message ?? "no luck"), { code: "tool-failed" })),
  crash: () => Promise.reject(new ToolError("KeyError")),
  betray: () => Promise.reject(new ToolError("betrayed")),
};
const { emit } = globalThis;
for (const input of plan.inputs) {
  if (input.round === 2) say(`middle-${plan.nonce}`);
  globalThis.input = input;
  try {
    const type = plan.dialect === "javascript" ? "text/javascript" : "application/typescript";
    const module = await import(address(new Chunks([plan.code], { type })));
    const main = module.default;
    emit(typeof main === "function" ? await main(input, globalThis.tools) : await main);
  } catch (error) {
    emit(error);
  }
}
say(`end-${plan.nonce}`);
read(new Bytes(1));
Deno.exit(0);
