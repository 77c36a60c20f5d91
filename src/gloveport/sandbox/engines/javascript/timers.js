// The platform's timers, driven by the host's clock. When the guest goes quiet, it requests an event for the earliest one;
// when that arrives, it fires the timers that are due.

import { currentTime } from "./clock.js";
import { apply, create, min, Number_, TypeError_ } from "./primordials.js";
import { currentLabel, enterEvent, runLabelled } from "./steps.js";

const MAX_DELAY_MS = 0x7fffffff; // as in browsers and Node; a longer delay means 1 ms there, and this here

const timers = create(null); // id → {id, due, every, run, args, label}
let count = 0;
let nextId = 1;
let asked = null;

function add(run, delay, every, args) {
  if (typeof run !== "function") throw new TypeError_("a timer takes a function");
  const number = Number_(delay);
  const millis = number > 0 ? min(number, MAX_DELAY_MS) : 0;
  const id = nextId++;
  timers[id] = {
    __proto__: null,
    id,
    due: currentTime() + millis * 1000,
    every: every ? millis * 1000 : null,
    run,
    args,
    label: currentLabel(),
  };
  count++;
  return id;
}

function earliest(before = nextId) {
  if (count === 0) return null; // called at every event; most programs have no timers
  let found = null;
  // Ids ascend, and integer keys are iterated in order, so timers with the same due time fire in the order they were set.
  for (const id in timers) {
    const timer = timers[id];
    if (timer.id < before && (found === null || timer.due < found.due)) found = timer;
  }
  return found;
}

function remove(id) {
  const number = Number_(id);
  if (timers[number] === undefined) return;
  delete timers[number];
  count--;
}

/** Returns the frame that requests the next timer event, or null when the host has it already. */
export function timerRequest() {
  const due = earliest()?.due ?? null;
  if (due === asked) return null;
  asked = due;
  return due === null ? '["timer",null]' : `["timer",${due}]`;
}

export function timersPending() {
  return count > 0;
}

/** Fires the timers that are due at `now` and were set before this event. After each, `settle` runs its microtasks. */
export function fireTimers(now, settle, failed) {
  asked = null;
  const before = nextId;
  for (;;) {
    const timer = earliest(before);
    if (timer === null || timer.due > now) return;
    if (timer.every === null) remove(timer.id);
    else timer.due = now + (timer.every || 1000);
    enterEvent(timer.label);
    try {
      runLabelled(timer.label, () => apply(timer.run, undefined, timer.args));
    } catch (error) {
      failed(error);
    }
    settle();
  }
}

export const timerGlobals = {
  setTimeout: (run, delay, ...args) => add(run, delay, false, args),
  setInterval: (run, delay, ...args) => add(run, delay, true, args),
  setImmediate: (run, ...args) => add(run, 0, false, args),
  clearTimeout: remove,
  clearInterval: remove,
  clearImmediate: remove,
};
