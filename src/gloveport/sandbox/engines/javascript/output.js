// Console lines and emitted values. Lines are sent at once, so that a killed run keeps them.

import { Console_ } from "./engine.js";
import { apply, create, quote, stringSlice } from "./primordials.js";
import { encode } from "./values.js";
import { flush, send } from "./wire.js";

const LEVELS = ["debug", "log", "warn", "error"];
const LINE_COST = 16;

let left = 0;
let dropped = 0;

export function setLogBudget(bytes) {
  left = bytes;
}

/** Returns how many characters of output were left out. */
export function droppedOutput() {
  return dropped;
}

/** Sends a line to the host within the budget, which the host checks again. */
export function log(level, text) {
  if (left <= 0) {
    dropped += text.length;
    return;
  }
  const kept = text.length > left ? stringSlice(text, 0, left) : text;
  dropped += text.length - kept.length;
  left -= kept.length + LINE_COST;
  send(`["log",${quote(level)},${quote(kept)}]`);
  flush();
}

function emit(value) {
  send(`["emit",${encode(value, "emit")}]`);
  flush();
}

function makeConsole(now) {
  let information = false;
  const console = new Console_((message, level) => {
    const text = message[message.length - 1] === "\n" ? stringSlice(message, 0, -1) : message;
    log(information ? "info" : LEVELS[level] ?? "log", text);
  });
  const { log: write } = console;
  console.info = (...items) => {
    information = true;
    try {
      apply(write, console, items);
    } finally {
      information = false;
    }
  };
  const timers = create(null);
  const elapsed = (label) => `${label}: ${(now() - timers[label]).toFixed(3)}ms`;
  console.time = (label = "default") => void (timers[label] = now());
  console.timeLog = (label = "default", ...items) => label in timers && console.log(elapsed(label), ...items);
  console.timeEnd = (label = "default") => {
    if (label in timers) console.log(elapsed(label));
    delete timers[label];
  };
  return console;
}

/** Returns `console` and `emit`. `now` is the clock that console.time reads. */
export function makeOutput(now) {
  return { console: makeConsole(now), emit };
}
