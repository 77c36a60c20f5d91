// What the program shows: console lines and emitted values. Lines are sent at once, so that a run that is killed keeps them.

import { apply, Console_, quote, stringSlice } from "./primordials.js";
import { encode } from "./values.js";
import { flush, send } from "./wire.js";

const LEVELS = ["debug", "log", "warn", "error"];
const LONGEST_LINE = 64 * 1024;

let left = 0;
let dropped = 0;

export function setLogBudget(bytes) {
  left = bytes;
}

/** How many characters of output were left out. */
export function droppedOutput() {
  return dropped;
}

/** Sends a line to the host, as far as the budget goes; the host counts again. */
export function log(level, text) {
  const room = left < LONGEST_LINE ? left : LONGEST_LINE;
  const kept = text.length > room ? stringSlice(text, 0, room) : text;
  dropped += text.length - kept.length;
  if (left <= 0) return;
  left -= kept.length + 1;
  send(`["log",${quote(level)},${quote(kept)}]`);
  flush();
}

function emit(value) {
  send(`["emit",${encode(value, "emit")}]`);
  flush();
}

function makeConsole() {
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
  return console;
}

export function makeOutput() {
  return { console: makeConsole(), emit };
}
