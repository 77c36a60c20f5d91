// The parts of Deno that the prelude uses, captured before any guest code runs. The language itself is in primordials.js.

import { dateToString, getter, RangeError_ } from "./primordials.js";

export { dateToString as dateText };
export const Blob_ = Blob;
export const createObjectURL = URL.createObjectURL.bind(URL);
export const revokeObjectURL = URL.revokeObjectURL.bind(URL);
export const urlHref = getter(URL.prototype, "href");

export const encodeInto = TextEncoder.prototype.encodeInto.bind(new TextEncoder());

const internals = Deno[Deno.internal];
export const { decode: decodeText, evalContext, readSync, writeSync } = internals.core;
export const { setUnhandledPromiseRejectionHandler } = internals.core;
const { hasTickScheduled, runMicrotasks: drain, runNextTicks } = internals.core;
const { getAsyncContext, immediateRefCount, kRefed, queueImmediate, setAsyncContext } = internals.core;
export const inspect = Deno.inspect;
export const Console_ = internals.Console;
export const exit = Deno.exit.bind(Deno);
export const engineVersion = Deno.version.deno;
/** Reads and writes files, where the process was started with a workspace. */
export const fileSystem = {
  __proto__: null,
  mkdirSync: Deno.mkdirSync,
  readDirSync: Deno.readDirSync,
  readFileSync: Deno.readFileSync,
  readTextFileSync: Deno.readTextFileSync,
  removeSync: Deno.removeSync,
  renameSync: Deno.renameSync,
  statSync: Deno.statSync,
  writeFileSync: Deno.writeFileSync,
  writeTextFileSync: Deno.writeTextFileSync,
};

/** Runs all microtasks, and the ticks of Node's modules. */
export function runMicrotasks() {
  drain();
  if (hasTickScheduled()) runNextTicks();
}

/** The label of the code that runs now. V8 restores it after each await. */
export const labelAwaits = { __proto__: null, get: getAsyncContext, set: setAsyncContext };

/** V8 knows the label of code that waited. */
export function labelEvents(_label) {}

/** Calls `run` in the next turn of the engine's loop, like `setImmediate`, which would load Node's timers. */
export function nextTurn(run) {
  immediateRefCount(true);
  queueImmediate({
    __proto__: null,
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

/** Returns the code of an error thrown at the memory limit: by a buffer or a clone. V8 aborts the process where its heap is full. */
export function limitOf(thrown) {
  try {
    const message = thrown.message;
    const lost = (thrown instanceof RangeError_ && message === "Array buffer allocation failed") ||
      message === "Data cannot be cloned, out of memory.";
    return lost ? "memory-limit" : undefined;
  } catch {
    return undefined;
  }
}
