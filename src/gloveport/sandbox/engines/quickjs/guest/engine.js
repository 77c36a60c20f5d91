// What the prelude uses of QuickJS and of the Python around it (gloveport_guest/engine.py), taken before any guest code
// runs; the language itself is in primordials.js.

import { Console } from "./console.js";
import { show } from "./inspect.js";
import { dateToString, deleteProperty, Error_, Map_, mapDelete, mapForEach, mapSet, uncurry } from "./primordials.js";

export const { $$read: readText, $$send: sendText, $$flush: flushTexts, $$compile: compile, $$drain: drain } =
  globalThis;
export const { $$limit: limitMemory } = globalThis;
const { $$relieve: relieve, $$version: version, InternalError } = globalThis;
for (const name of ["$$read", "$$send", "$$flush", "$$compile", "$$drain", "$$limit", "$$relieve", "$$version"]) {
  deleteProperty(globalThis, name);
}

export const engineVersion = version;
export { Console as Console_ };
export { show as inspect };

const ZONE = " (Coordinated Universal Time)";
const dateToTime = uncurry(Date.prototype.toTimeString);
const named = (text) => text === "Invalid Date" ? text : text + ZONE;

/** A date in words, with the name of the zone, which QuickJS leaves out. */
export function dateText(date) {
  return named(dateToString(date));
}

export function timeText(date) {
  return named(dateToTime(date));
}

/** QuickJS has no URL. */
export function urlHref() {
  return undefined;
}

// QuickJS has no loop of its own: what is to be done in the next turn waits here.
let next = null;

export function nextTurn(run) {
  next = run;
}

/** Does what waits for its turn, until nothing does. */
export function takeTurns() {
  while (next !== null) {
    const run = next;
    next = null;
    run();
  }
}

const rejected = new Map_(); // promise → reason, of those that nobody handles so far
let anyRejected = false;
let onUnhandled = () => {};

/** Told by the engine when a promise is rejected without a handler, and when it gets one afterwards. */
export function track(promise, reason, handled) {
  if (handled) return void mapDelete(rejected, promise);
  mapSet(rejected, promise, reason);
  anyRejected = true;
}

export function setUnhandled(handler) {
  onUnhandled = handler;
}

/** Runs all that is ready; a rejection that nobody has handled by then is told. */
export function runMicrotasks() {
  drain();
  if (!anyRejected) return;
  anyRejected = false;
  mapForEach(rejected, (reason, promise) => {
    mapDelete(rejected, promise);
    onUnhandled(reason);
  });
}

/**
 * The code of what was thrown at the engine's limit, for which there is room afterwards to describe it. Where there was no
 * room for an error either, the engine throws null.
 */
export function limitOf(thrown) {
  const lost = thrown === null || (thrown instanceof InternalError && thrown.message === "out of memory");
  return lost && relieve(thrown === null) ? "memory-limit" : undefined;
}

/** The error of a program that the engine could not read, in the engine's words. */
export class Unreadable extends Error_ {}
