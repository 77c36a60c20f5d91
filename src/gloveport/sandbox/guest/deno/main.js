// The guest's entry: take the platform apart, say ready, wait for the program, run it, and be quiet between events.

import { advanceTo, startClock } from "./clock.js";
import { describe, describeLoad, setPrefix } from "./errors.js";
import { installGlobals, installRun, nextTurn } from "./globals.js";
import { droppedOutput, setLogBudget } from "./output.js";
import { deliverWork, platformBusy } from "./platform.js";
import {
  apply,
  Blob_,
  create,
  createObjectURL,
  defineProperty,
  deleteProperty,
  engineVersion,
  fromBase64,
  parseJson,
  promiseResolve,
  promiseThen,
  quote,
  revokeObjectURL,
  runMicrotasks,
  setUnhandledPromiseRejectionHandler,
  TypeError_,
  Uint8Array_,
} from "./primordials.js";
import { seed } from "./random.js";
import { fireTimers, timerRequest, timersPending } from "./timers.js";
import { callsPending, installSources, installTools, pendingIds, resetCalls, setClock, settleCall } from "./tools.js";
import { BadValue, decode, encode } from "./values.js";
import { discard, flush, nextEvent, send, setMaxFrame } from "./wire.js";

const BEGIN = "$$begin();";

const IDLE_TURNS = 100; // of the engine's loop, which it may need to report that the program's module has evaluated

let result = null; // the last two fields of the done frame, once the program has settled
let evaluated = false;
let idleTurns = 0;
const unhandled = create(null);
let unhandledCount = 0;

function settle(kind, text) {
  result ??= `${quote(kind)},${text}`;
}

function succeed(value) {
  let text;
  try {
    text = encode(value, "result");
  } catch (error) {
    if (!(error instanceof BadValue)) return fail(error);
    return settle("error", `{"type":"TypeError","code":"bad-value","message":${quote(error.message)}}`);
  }
  settle("value", text);
}

function fail(thrown) {
  settle("error", describe(thrown));
}

function deliver(event) {
  advanceTo(event[1]);
  if (event[0] === "reply") settleCall(event);
  else if (event[0] === "timer") fireTimers(event[1], runMicrotasks, fail);
}

// Everything after the program's first instruction happens in here. Each turn: drain the microtasks; if asynchronous
// platform work is under way, hand over what came of it or let the engine's loop turn; otherwise hand over what was asked
// and wait for one event.
function loop() {
  for (;;) {
    runMicrotasks();
    if (result !== null) return nextTurn(finish);
    if (platformBusy()) {
      if (deliverWork()) continue;
      return nextTurn(loop);
    }
    const request = timerRequest();
    if (request !== null) send(request);
    if (callsPending() === 0 && !timersPending()) {
      if (!evaluated && idleTurns++ < IDLE_TURNS) return nextTurn(loop);
      settle(
        "error",
        '{"type":"Error","code":"never-settles","message":"the program waits for something that can never happen"}',
      );
      return nextTurn(finish);
    }
    flush();
    deliver(nextEvent());
  }
}

// One turn of the engine's own loop has passed since the program settled, so that unhandled rejections are known.
function finish() {
  let notes = "";
  for (let index = 0; index < unhandledCount && index < 20; index++) notes += (index ? "," : "") + unhandled[index];
  try {
    send(`["done",${result},{"pending":${pendingIds()},"unhandled":[${notes}],"dropped":${droppedOutput()}}]`);
  } catch (error) {
    const text = quote(`the result is too large: ${error.message}`);
    send(
      `["done","error",{"type":"RangeError","code":"result-too-large","message":${text}},{"pending":${pendingIds()},"unhandled":[],"dropped":0}]`,
    );
  }
  flush();
  for (;;) nextEvent(); // the host ends this process; nothing of the program runs any more
}

function run(module, entry, setup, tools) {
  const exported = module.default;
  if (typeof exported !== "function") return exported;
  const args = entry === "body" ? [] : setup.has_input ? [setup.input, tools] : [tools];
  return apply(exported, undefined, args);
}

function load(code, dialect) {
  const type = dialect === "typescript" ? "application/typescript" : "text/javascript";
  const url = createObjectURL(new Blob_([code], { type }));
  const loading = import(url);
  return promiseThen(loading, (module) => {
    revokeObjectURL(url);
    return module;
  });
}

// The first use of a path costs up to a millisecond (lazy compilation, cold caches): paid here, before a run.
const REHEARSAL = `${BEGIN}export default async (tools) => {
  const given = await tools.warm.up({ list: [1.5, "x", null, true], when: 1 });
  return { given, text: \`\${given}\` };
}`;

async function warm(dialect) {
  defineBegin(() => {});
  const module = await load(REHEARSAL, dialect);
  const running = run(module, "function", { has_input: false }, tools);
  discard();
  settleCall(["reply", 0, 1, true, decode(parseJson(encode({ a: [1], b: "", c: { d: null } }, "warm")))]);
  encode(await running, "result");
  timerRequest();
  resetCalls();
}

function defineBegin(value) {
  defineProperty(globalThis, "$$begin", { __proto__: null, configurable: true, enumerable: false, value });
}

function begin(setup) {
  setMaxFrame(setup.max_frame_bytes);
  setLogBudget(setup.max_log_bytes);
  seed(fromBase64(setup.seed));
  installRun(setup);
  installSources(setup.sources);
  let started = false;
  // The program's first statement: from here on the module evaluates, so calls can come out and must be answered.
  defineBegin(() => {
    deleteProperty(globalThis, "$$begin");
    started = true;
    nextTurn(loop);
  });
  setPrefix(BEGIN.length);
  promiseThen(load(BEGIN + setup.code, setup.dialect), (module) => {
    evaluated = true;
    if (!started) nextTurn(loop); // the program has a `$$begin` of its own
    let value;
    try {
      value = run(module, setup.entry, setup, tools);
    } catch (error) {
      return fail(error);
    }
    promiseThen(promiseResolve(value), succeed, fail);
  }, (error) => {
    evaluated = true;
    if (started) return fail(error);
    settle("error", describeLoad(error));
    nextTurn(finish);
  });
}

setUnhandledPromiseRejectionHandler((_promise, reason) => {
  unhandled[unhandledCount++] = describe(reason);
  return true;
});
globalThis.addEventListener("error", (event) => {
  event.preventDefault();
  fail(event.error);
});

const allowWasm = Deno.args[0] === "wasm"; // read here, because nothing of Deno is left afterwards
setClock(advanceTo);
installGlobals(allowWasm);
const tools = installTools();
seed(new Uint8Array_(32));
await warm("typescript");
await warm("javascript");
send(`["ready",1,${quote(`deno ${engineVersion}`)}]`);
flush();

const start = nextEvent();
if (start[0] !== "start") throw new TypeError_("expected a start frame");
startClock(start[1]);
begin(start[2]);
