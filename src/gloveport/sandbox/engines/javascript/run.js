// A run, from its start event to its end. The guest is quiet between events.

import { advanceTo } from "./clock.js";
import { nextTurn, runMicrotasks } from "./engine.js";
import { describe } from "./errors.js";
import { nextEvent } from "./events.js";
import { installRun } from "./globals.js";
import { installModules } from "./modules.js";
import { droppedOutput, setLogBudget } from "./output.js";
import { deliverWork, platformBusy } from "./platform.js";
import { apply, create, fromBase64, promiseResolve, promiseThen, quote } from "./primordials.js";
import { seed } from "./random.js";
import { fireTimers, timerRequest, timersPending } from "./timers.js";
import { callsPending, installSources, pendingIds, settleCall } from "./tools.js";
import { BadValue, encode } from "./values.js";
import { flush, send, setMaxFrame } from "./wire.js";

const IDLE_TURNS = 100; // turns that the engine's loop may need to report that the program's module has evaluated

let result = null; // the last two fields of the done frame, once the program has settled
let state; // of a session
let stateNote = "";
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
    if (state !== undefined) stateNote = `,"state":${encode(state, "state")}`;
  } catch (error) {
    if (!(error instanceof BadValue)) return fail(error);
    return settle("error", `{"type":"TypeError","code":"bad-value","message":${quote(error.message)}}`);
  }
  settle("value", text);
}

/** Ends the run with the error that the program threw. */
export function fail(thrown) {
  settle("error", describe(thrown));
}

function deliver(event) {
  advanceTo(event[1]);
  if (event[0] === "reply") settleCall(event);
  else if (event[0] === "timer") fireTimers(event[1], runMicrotasks, fail);
}

// Everything after the program's first instruction happens here. Each turn drains the microtasks. If asynchronous platform
// work is pending, it delivers its results or lets the engine's loop turn. Otherwise it flushes the frames and waits for
// one event.
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

// The engine's own loop has turned once since the program settled, so unhandled rejections are known.
function finish() {
  let notes = "";
  for (let index = 0; index < unhandledCount && index < 20; index++) notes += (index ? "," : "") + unhandled[index];
  try {
    send(
      `["done",${result},{"pending":${pendingIds()},"unhandled":[${notes}],"dropped":${droppedOutput()}${stateNote}}]`,
    );
  } catch (error) {
    const text = quote(`the result is too large: ${error.message}`);
    send(
      `["done","error",{"type":"RangeError","code":"result-too-large","message":${text}},{"pending":${pendingIds()},"unhandled":[],"dropped":0}]`,
    );
  }
  flush();
  for (;;) nextEvent(); // the host kills this process; the program does not run any more
}

/** Returns the result of the program's module: its default export, called if it is a function. */
export function run(module, entry, setup, tools) {
  const exported = module.default;
  if (typeof exported !== "function") return exported;
  const args = entry === "body" ? [] : setup.has_input ? [setup.input, tools] : [tools];
  return apply(exported, undefined, args);
}

/** Returns whether nothing was called, scheduled or left uncaught so far. */
export function isUntouched() {
  return droppedOutput() === 0 && unhandledCount === 0 && callsPending() === 0 && !timersPending() && !platformBusy();
}

/** Notes an uncaught error for the end of the run. */
export function noteUnhandled(reason) {
  unhandled[unhandledCount++] = describe(reason);
}

/**
 * Starts the run of a start event. `load(setup, started)` returns a promise for the program's module and calls `started`
 * once that evaluates: calls can be made from then on. `explain` describes a program that can't be loaded.
 */
export function begin(setup, tools, load, explain) {
  setMaxFrame(setup.max_frame_bytes);
  setLogBudget(setup.max_log_bytes);
  const { modules } = setup;
  const isPrepared = modules?.prepared !== undefined; // then they are there, and randomness goes on
  if (!isPrepared) seed(fromBase64(setup.seed));
  state = setup.state;
  installRun(setup);
  installSources(setup.sources);
  let started = false;
  const begun = () => {
    started = true;
    nextTurn(loop);
  };
  const loading = modules === undefined || isPrepared
    ? load(setup, begun)
    : promiseThen(installModules(modules), () => load(setup, begun));
  promiseThen(loading, (module) => {
    evaluated = true;
    if (!started) nextTurn(loop); // the program prevented the call of `started`
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
    settle("error", explain(error));
    nextTurn(finish);
  });
}
