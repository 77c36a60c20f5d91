// V8's stacks: which frames belong to the program, and how to record a few of them.

import { defineProperty, Error_, getOwnPropertyDescriptor, stringStartsWith } from "./primordials.js";

// The trap of `tools` and the line of the program. It is defined, not assigned: the guest may have put an accessor there.
const TWO_FRAMES = { __proto__: null, value: 2, writable: true, enumerable: true, configurable: true };

export const PROGRAM = "program.ts";
let prefix = 0; // the columns that the prelude put before the first line of the program

export function setPrefix(columns) {
  prefix = columns;
}

/** Returns the program's column for a column of the engine. */
export function ownColumn(line, column) {
  return line === 1 ? column - prefix : column;
}

/** Returns whether a frame is the program's: its file is a blob, or named like one. */
export function inProgram(site) {
  const file = site.getFileName();
  return typeof file === "string" && stringStartsWith(file, "blob:");
}

export function isAsync(site) {
  return site.isAsync();
}

export function isToplevel(site) {
  return site.isToplevel();
}

/** Runs `note` while stacks are limited to two frames. */
export function withFewFrames(note) {
  const before = getOwnPropertyDescriptor(Error_, "stackTraceLimit");
  defineProperty(Error_, "stackTraceLimit", TWO_FRAMES);
  note();
  if (before !== undefined) defineProperty(Error_, "stackTraceLimit", before);
}

/** Makes `prepare` format all stacks. `set` takes what the program assigns to Error.prepareStackTrace. */
export function install(prepare, set) {
  defineProperty(Error_, "prepareStackTrace", {
    __proto__: null,
    get: () => prepare,
    set,
    enumerable: false,
    configurable: false,
  });
}
