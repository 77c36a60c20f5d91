// V8's stacks: which frames are the program's, and how to note a few of them.

import { defineProperty, Error_, getOwnPropertyDescriptor, stringStartsWith } from "./primordials.js";

// The trap of `tools`, and the line of the program. Defined, not assigned: the guest may have put an accessor there.
const FEW = { __proto__: null, value: 2, writable: true, enumerable: true, configurable: true };

export const PROGRAM = "program.ts";
let prefix = 0; // how many columns the prelude put before the first line of the program

export function setPrefix(columns) {
  prefix = columns;
}

/** The program's own column for one of the engine's. */
export function ownColumn(line, column) {
  return line === 1 ? column - prefix : column;
}

/** True for the program's frames: it is a blob, or called one. */
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

/** Runs `note` while stacks have two frames. */
export function withFewFrames(note) {
  const before = getOwnPropertyDescriptor(Error_, "stackTraceLimit");
  defineProperty(Error_, "stackTraceLimit", FEW);
  note();
  if (before !== undefined) defineProperty(Error_, "stackTraceLimit", before);
}

/** Has `prepare` write all stacks; `set` takes what the program assigns to Error.prepareStackTrace. */
export function install(prepare, set) {
  defineProperty(Error_, "prepareStackTrace", {
    __proto__: null,
    get: () => prepare,
    set,
    enumerable: false,
    configurable: false,
  });
}
