// What a prelude must not be: it speaks the wire's protocol with whatever built-ins the program has left in place, and keeps
// its state in ordinary objects. Programs that hijack a prelude are shown to work here, so that they test something.

import "node:fs";

const stdin = Deno.stdin;
const stdout = Deno.stdout;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const internals = { Deno };
const exit = Deno.exit;
const immediate = setImmediate;
let buffer = new Uint8Array(0);

async function fill(count) {
  while (buffer.length < count) {
    const chunk = new Uint8Array(65536);
    const size = await stdin.read(chunk);
    if (size === null) exit(0);
    const grown = new Uint8Array(buffer.length + size);
    grown.set(buffer);
    grown.set(chunk.subarray(0, size), buffer.length);
    buffer = grown;
  }
}

async function hear() {
  await fill(4);
  const length = buffer.reduce((total, byte, at) => at < 4 ? total * 256 + byte : total, 0);
  await fill(4 + length);
  const text = decoder.decode(buffer.subarray(4, 4 + length));
  buffer = buffer.slice(4 + length);
  return JSON.parse(text);
}

const queue = [];

function say(message) {
  const text = message.toWire ? message.toWire() : JSON.stringify(message);
  const bytes = encoder.encode(text);
  const frame = new Uint8Array(bytes.length + 4);
  frame.set([bytes.length >>> 24, bytes.length >>> 16, bytes.length >>> 8, bytes.length].map((byte) => byte & 255));
  frame.set(bytes, 4);
  queue.push(frame);
  flush.call(internals);
}

function flush() {
  while (queue.length) {
    const next = queue.shift();
    stdout.writeSync(next.subarray(0, next.length));
  }
}

const pending = new Map();
let lastId = 0;

class ToolError extends Error {
  constructor(message, fields) {
    super(message);
    for (const name of ["code", "tool", "data"]) this[name] = fields[name];
  }
}

function call(name, args) {
  const id = ++lastId;
  const site = {};
  Error.captureStackTrace(site);
  const entry = { state: internals };
  const promise = new Promise((resolve, reject) => {
    entry.id = id;
    entry.resolve = resolve;
    entry.reject = reject;
    entry.error = null;
    entry.frame = internals.frame;
    pending.set(id, entry);
    say(["call", id, String(name).replace(/^tools\./, ""), Array.from(args)]);
  });
  return promise.then((value) => value);
}

const tools = new Proxy({}, {
  get: (_, name) => typeof name === "string" && name !== "then" ? (...args) => call.apply(internals, [name, args]) : undefined,
});

function deliver(frame) {
  const [, , id, ok, value, ...rest] = frame;
  internals.rest = rest;
  const entry = pending.get(id);
  pending.delete(id);
  if (ok) entry.resolve(value);
  else entry.reject(new ToolError(value.message, value));
}

say(["ready", 1, "naive"]);
const start = await hear();
internals.frame = start;
const setup = start[2];
const note = Buffer.from(JSON.stringify(start)); // lies in the pool that every small Buffer shares
Object.assign(globalThis, { tools, ToolError, emit: (value) => say(typeof value === "string" ? { toWire: () => `["emit","${value}"]` } : ["emit", value]), input: setup.input, $$note: undefined });
globalThis.console = {
  log: (...items) => stdout.writeSync(encoder.encode(items.join(" "))), // the host's own stdout, as if nobody listened there
};
delete globalThis.Deno;
globalThis.addEventListener("unhandledrejection", (event) => event.preventDefault());
globalThis.addEventListener("error", (event) => event.preventDefault());

async function run() {
  const url = URL.createObjectURL(new Blob([setup.code], { type: setup.type }));
  const module = await import(url);
  const program = module.default;
  const value = typeof program === "function" ? program.call(globalThis, setup.input, tools) : program;
  Promise.resolve(value).then(
    (result) => say(["done", "value", result === undefined ? null : result, { pending: [], dropped: note.length * 0 }]),
    (error) => {
      const known = error instanceof ToolError;
      const told = { type: error?.name, message: `${error?.message}`, code: known ? error.code : "program-failed" };
      say(["done", "error", told, {}]);
    },
  );
}
immediate(run);
for (;;) Promise.resolve(await hear()).then((frame) => deliver.call(internals, frame));
