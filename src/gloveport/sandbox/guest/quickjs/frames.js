// QuickJS's stacks: which frames are the program's, and how to note a few of them.

import { apply, defineProperty, Error_, getOwnPropertyDescriptor } from "./primordials.js";

export const PROGRAM = "program.ts";

// The engine asks for its own limit, whatever the guest puts in the place of this property.
const limit = getOwnPropertyDescriptor(Error_, "stackTraceLimit");
const FEW = [2]; // the trap of `tools`, and the line of the program

/** The program's own column for one of the engine's. */
export function ownColumn(_line, column) {
  return column;
}

export function inProgram(site) {
  return site.getFileName() === PROGRAM;
}

/** QuickJS's stacks end at an await. */
export function isAsync(_site) {
  return false;
}

export function isToplevel(_site) {
  return false;
}

/** Runs `note` while stacks have two frames. */
export function withFewFrames(note) {
  const before = apply(limit.get, Error_, []);
  apply(limit.set, Error_, FEW);
  note();
  apply(limit.set, Error_, [before]);
}

/** Has `prepare` write all stacks; `set` takes what the program assigns to Error.prepareStackTrace. */
export function install(prepare, set) {
  Error_.prepareStackTrace = prepare; // the engine keeps it; the property is only the way to it
  defineProperty(Error_, "prepareStackTrace", {
    __proto__: null,
    get: () => prepare,
    set,
    enumerable: false,
    configurable: false,
  });
}
