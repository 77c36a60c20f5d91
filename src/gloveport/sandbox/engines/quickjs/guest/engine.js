// The parts of QuickJS, and of the Python process around it (gloveport_guest/engine.py), that the prelude uses, captured
// before any guest code runs. The language itself is in primordials.js.

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

/** Returns a date as text with the name of the time zone, which QuickJS leaves out. */
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

// QuickJS does not tell when an async function goes on. So the label changes with the events, one of which is the cause of
// everything that runs until the next one. Code that waits for a promise of another step gets the label of that step.
let label;
export const labelAwaits = { __proto__: null, get: () => label, set: labelEvents };

export function labelEvents(next) {
  label = next;
}

// QuickJS has no event loop: callbacks for the next turn are queued here.
let next = null;

export function nextTurn(run) {
  next = run;
}

/** Runs the queued callbacks until there are none. */
export function takeTurns() {
  while (next !== null) {
    const run = next;
    next = null;
    run();
  }
}

const rejected = new Map_(); // promise → reason, for rejections that are not handled yet
let anyRejected = false;
let onUnhandled = () => {};

/** The engine calls it when a promise is rejected without a handler, and when it gets one afterwards. */
export function track(promise, reason, handled) {
  if (handled) return void mapDelete(rejected, promise);
  mapSet(rejected, promise, reason);
  anyRejected = true;
}

export function setUnhandled(handler) {
  onUnhandled = handler;
}

/** Runs all ready jobs and reports the rejections that are still unhandled. */
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
 * Returns the code of an error thrown at the engine's memory limit, after making room to describe it. The engine throws
 * null when there was no room for an error either.
 */
export function limitOf(thrown) {
  const lost = thrown === null || (thrown instanceof InternalError && thrown.message === "out of memory");
  return lost && relieve(thrown === null) ? "memory-limit" : undefined;
}

/** Returns the engine's error for a program that it could not parse. */
export class Unreadable extends Error_ {}
