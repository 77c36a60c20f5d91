// `step(name, run)` labels the calls that `run` makes. The host records the labels; no decision depends on one.
//
// engine.js carries the label across awaits. In Deno, V8 does that. QuickJS can't, so the label follows the events: code
// that runs because of a reply or a timer gets the label of the call or of the timer.

import { labelAwaits, labelEvents } from "./engine.js";
import { stringSlice, TypeError_ } from "./primordials.js";

const MAX_LABEL_CHARS = 200;
const FORM = 'step takes a name and a function, as in `await step("load", async () => …)`';

let used = false;

/** Returns the label for a call that is made now: the names of the steps around it, from the outside in. */
export function currentLabel() {
  return used ? labelAwaits.get() : undefined;
}

/** Goes on with code that waited for an event under a label. */
export function enterEvent(label) {
  if (used) labelEvents(label);
}

/** Calls `run` under a label. */
export function runLabelled(label, run) {
  if (!used) return run();
  const outer = labelAwaits.get();
  labelAwaits.set(label);
  try {
    return run();
  } finally {
    labelAwaits.set(outer);
  }
}

/** The global `step`. */
export async function step(name, run) {
  if (typeof name !== "string" || typeof run !== "function") throw new TypeError_(FORM);
  used = true;
  const outer = labelAwaits.get();
  const label = stringSlice(outer === undefined ? name : `${outer}/${name}`, 0, MAX_LABEL_CHARS);
  const value = runLabelled(label, run);
  try {
    return await value;
  } finally {
    labelAwaits.set(outer); // for QuickJS: whoever waits for the step goes on in the next microtasks
  }
}
