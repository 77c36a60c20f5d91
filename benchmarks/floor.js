// The floor: a bare Deno, started in advance, that reads a program from its pipe and sends the result. It has no jail, no
// checks, no clock and no values beyond JSON. Framing and warm-up are those of our prelude.

const { core } = Deno[Deno.internal];
const { decode, evalContext, immediateRefCount, kRefed, queueImmediate, readSync, runMicrotasks, writeSync } = core;
const encoder = new TextEncoder();

// setImmediate without Node's timers, which take as long to load as the engine takes to start.
function turn(run) {
  immediateRefCount(true);
  queueImmediate({
    [kRefed]: true,
    _argv: null,
    _destroyed: false,
    _idleNext: null,
    _idlePrev: null,
    _onImmediate: run,
    asyncId: 0,
    triggerAsyncId: 0,
  });
}

let input = new Uint8Array(65536);
let start = 0;
let end = 0;
const output = new Uint8Array(1 << 20);
let filled = 0;

function need(count) {
  if (start + count > input.length) {
    const grown = new Uint8Array(Math.max(count, input.length * 2));
    grown.set(input.subarray(start, end));
    input = grown;
    end -= start;
    start = 0;
  }
  while (end - start < count) {
    const read = readSync(0, input.subarray(end));
    if (!read) Deno.exit(0);
    end += read;
  }
}

function read() {
  need(4);
  const length = (input[start] << 24) | (input[start + 1] << 16) | (input[start + 2] << 8) | input[start + 3];
  start += 4;
  need(length);
  const frame = JSON.parse(decode(input.subarray(start, start + length)));
  start += length;
  if (start === end) start = end = 0;
  return frame;
}

function send(frame) {
  const { written } = encoder.encodeInto(JSON.stringify(frame), output.subarray(filled + 4));
  output[filled] = written >>> 24;
  output[filled + 1] = written >>> 16;
  output[filled + 2] = written >>> 8;
  output[filled + 3] = written;
  filled += 4 + written;
}

function flush() {
  let sent = 0;
  while (sent < filled) sent += writeSync(1, output.subarray(sent, filled));
  filled = 0;
}

const pending = new Map();
let calls = 0;
globalThis.tools = {
  echo: (value) =>
    new Promise((resolve) => {
      pending.set(++calls, resolve);
      send(["call", calls, "echo", [value]]);
    }),
};

// TypeScript by Deno's own means; JavaScript by V8 alone, as our prelude does it, without Deno's compiler.
async function load(code, dialect) {
  if (dialect === "typescript") {
    const blob = new Blob([`export default ${code}`], { type: "application/typescript" });
    return (await import(URL.createObjectURL(blob))).default;
  }
  const [program, failed] = evalContext(code, "file:///program.js");
  if (failed) throw failed.thrown;
  return program;
}

let result;

async function serve() {
  const [, code, dialect] = read();
  const program = await load(code, dialect);
  program().then((value) => result = ["done", value], (error) => result = ["failed", String(error)]);
  turn(loop);
}

function loop() {
  for (;;) {
    runMicrotasks();
    if (result !== undefined) break;
    flush();
    const reply = read();
    pending.get(reply[1])(reply[2]);
    pending.delete(reply[1]);
  }
  send(result);
  flush();
  read();
}

// One that is spawned for a program which is there already has nothing to warm up for.
if (Deno.args[0] === "cold") {
  await serve();
} else {
  for (const dialect of ["javascript", "typescript"]) {
    await (await load("async () => [1]", dialect))();
  }
  turn(() => {
    send(["ready"]);
    flush();
    serve();
  });
}
