// Timers as the platform has them, driven by the host's clock: the guest asks for the earliest one when it has gone quiet,
// and fires what is due when the host's timer event arrives.

import { currentTime } from "./clock.js";
import { apply, create, min, Number_, TypeError_ } from "./primordials.js";

const LONGEST = 0x7fffffff; // as in browsers and Node; more means 1 ms there, the longest here

const timers = create(null); // id → {id, due, every, run, args}
let count = 0;
let nextId = 1;
let asked = null;

function add(run, delay, every, args) {
  if (typeof run !== "function") throw new TypeError_("a timer takes a function");
  const number = Number_(delay);
  const millis = number > 0 ? min(number, LONGEST) : 0;
  const id = nextId++;
  timers[id] = {
    __proto__: null,
    id,
    due: currentTime() + millis * 1000,
    every: every ? millis * 1000 : null,
    run,
    args,
  };
  count++;
  return id;
}

function earliest(before = nextId) {
  if (count === 0) return null; // asked at every event, by programs that mostly have none
  let found = null;
  // Ids are handed out in order and integer keys are walked in order, so that equal due times fire in the order of asking.
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

/** The frame that asks for the next timer event, or null when the host knows already. */
export function timerRequest() {
  const due = earliest()?.due ?? null;
  if (due === asked) return null;
  asked = due;
  return due === null ? '["timer",null]' : `["timer",${due}]`;
}

export function timersPending() {
  return count > 0;
}

/** Fires the timers that are due at `now` and were set before this event, each followed by `settle` (its microtasks). */
export function fireTimers(now, settle, failed) {
  asked = null;
  const before = nextId;
  for (;;) {
    const timer = earliest(before);
    if (timer === null || timer.due > now) return;
    if (timer.every === null) remove(timer.id);
    else timer.due = now + (timer.every || 1000);
    try {
      apply(timer.run, undefined, timer.args);
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
