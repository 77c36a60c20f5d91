// The guest's entry: take the platform apart, say ready, wait for the program, run it, and be quiet between events.

import { advanceTo, startClock } from "./clock.js";
import { describe, describeLoad, setPrefix } from "./errors.js";
import { installGlobals, installRun, nextTurn, platformBusy } from "./globals.js";
import { droppedOutput, setLogBudget } from "./output.js";
import {
  apply,
  Blob_,
  createObjectURL,
  defineProperty,
  deleteProperty,
  engineVersion,
  fromBase64,
  parseJson,
  promiseResolve,
  promiseThen,
  revokeObjectURL,
  runMicrotasks,
  stringifyJson,
  TypeError_,
} from "./primordials.js";
import { seed } from "./random.js";
import { fireTimers, timerRequest, timersPending } from "./timers.js";
import { callsPending, installTools, pendingIds, setClock, settleCall } from "./tools.js";
import { decode, encode } from "./values.js";
import { flush, nextEvent, send, setMaxFrame } from "./wire.js";

const BEGIN = "$$begin();";

const IDLE_TURNS = 100; // of the engine's loop, which it may need to report that the program's module has evaluated

let result = null; // the last two fields of the done frame, once the program has settled
let evaluated = false;
let idleTurns = 0;
const unhandled = [];

function settle(kind, text) {
  result ??= `${stringifyJson(kind)},${text}`;
}

function succeed(value) {
  let text;
  try {
    text = encode(value, "result");
  } catch (error) {
    settle("error", `{"type":"TypeError","code":"bad-value","message":${stringifyJson(`${error.message}`)}}`);
    return;
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
// platform work is under way, let the engine's loop turn; otherwise hand over what was asked and wait for one event.
function loop() {
  for (;;) {
    runMicrotasks();
    if (result !== null) return nextTurn(finish);
    if (platformBusy()) return nextTurn(loop);
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
  for (let index = 0; index < unhandled.length && index < 20; index++) notes += (index ? "," : "") + unhandled[index];
  try {
    send(`["done",${result},{"pending":${pendingIds()},"unhandled":[${notes}],"dropped":${droppedOutput()}}]`);
  } catch (error) {
    const text = stringifyJson(`the result is too large: ${error.message}`);
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

function begin(setup) {
  setMaxFrame(setup.max_frame_bytes);
  setLogBudget(setup.max_log_bytes);
  seed(fromBase64(setup.seed));
  installRun(setup);
  const tools = installTools(setup.sources);
  let started = false;
  // The program's first statement: from here on the module evaluates, so calls can come out and must be answered.
  defineProperty(globalThis, "$$begin", {
    __proto__: null,
    configurable: true,
    enumerable: false,
    value: () => {
      deleteProperty(globalThis, "$$begin");
      started = true;
      nextTurn(loop);
    },
  });
  setPrefix(BEGIN.length);
  const type = setup.dialect === "typescript" ? "application/typescript" : "text/javascript";
  const url = createObjectURL(new Blob_([BEGIN + setup.code], { type }));
  promiseThen(import(url), (module) => {
    evaluated = true;
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

globalThis.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  defineProperty(unhandled, unhandled.length, { __proto__: null, value: describe(event.reason), configurable: true });
});
globalThis.addEventListener("error", (event) => {
  event.preventDefault();
  fail(event.error);
});

// The first use of a path costs up to a millisecond (lazy compilation, the transpiler's start): paid here, before a run.
async function warm() {
  for (const type of ["text/javascript", "application/typescript"]) {
    const url = createObjectURL(new Blob_(["export default async () => { const x = [1]; return x }"], { type }));
    const module = await import(url);
    decode(parseJson(encode({ list: await module.default(), text: "", none: null }, "warm")));
    revokeObjectURL(url);
  }
}

const allowWasm = Deno.args[0] === "wasm"; // read here, because nothing of Deno is left afterwards
setClock(advanceTo);
await warm();
installGlobals(allowWasm);
send(`["ready",1,${stringifyJson(`deno ${engineVersion}`)}]`);
flush();
const start = nextEvent();
if (start[0] !== "start") throw new TypeError_("expected a start frame");
startClock(start[1]);
begin(start[2]);
