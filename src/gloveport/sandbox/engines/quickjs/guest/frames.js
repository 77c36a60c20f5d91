// QuickJS's stacks: which frames belong to the program, and how to record a few of them.

import {
  apply,
  codePointAt,
  defineProperty,
  Error_,
  getOwnPropertyDescriptor,
  regexpExec,
  stringSlice,
} from "./primordials.js";

export const PROGRAM = "program.ts";

// The engine uses its own limit, whatever the guest defines under this property.
const limit = getOwnPropertyDescriptor(Error_, "stackTraceLimit");
const TWO_FRAMES = [2]; // the trap of `tools` and the line of the program

const LINE_END = /\r\n?|[\n\u2028\u2029]/g;
const WIDE = /[\u0080-\uffff]/;
let program = "";
let wide; // whether columns differ from byte offsets; computed on first use, which most runs never need

export function setProgram(code) {
  program = code;
  wide = undefined;
}

function lineOf(code, line) {
  let start = 0;
  LINE_END.lastIndex = 0;
  for (let number = 1;; number++) {
    const found = regexpExec(LINE_END, code);
    if (number === line || found === null) return stringSlice(code, start, found === null ? code.length : found.index);
    start = LINE_END.lastIndex;
  }
}

/** Returns the program's column, in UTF-16 units, for a column of the engine, which counts bytes. */
export function ownColumn(line, column) {
  wide ??= regexpExec(WIDE, program) !== null;
  if (!wide) return column;
  const text = lineOf(program, line);
  let bytes = 1;
  let units = 0;
  while (bytes < column && units < text.length) {
    const point = codePointAt(text, units);
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    units += point < 0x10000 ? 1 : 2;
  }
  return units + 1;
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

/** Runs `note` while stacks are limited to two frames. */
export function withFewFrames(note) {
  const before = apply(limit.get, Error_, []);
  apply(limit.set, Error_, TWO_FRAMES);
  note();
  apply(limit.set, Error_, [before]);
}

/** Makes `prepare` format all stacks. `set` takes what the program assigns to Error.prepareStackTrace. */
export function install(prepare, set) {
  Error_.prepareStackTrace = prepare; // the engine keeps the function; the property is only its setter
  defineProperty(Error_, "prepareStackTrace", {
    __proto__: null,
    get: () => prepare,
    set,
    enumerable: false,
    configurable: false,
  });
}
