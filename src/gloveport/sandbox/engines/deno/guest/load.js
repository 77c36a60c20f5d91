// Load a program in Deno. V8 alone compiles a program that is a function, as nearly all are once the host has prepared them.
// Any other is a module that is imported from a blob, because the static graph of the entry module may read any file.
// Deno's compiler reads it first.

import { Blob_, createObjectURL, evalContext, revokeObjectURL } from "./engine.js";
import { describe, place, read, text } from "./errors.js";
import { ownColumn, setPrefix } from "./frames.js";
import {
  defineProperty,
  deleteProperty,
  promiseReject,
  promiseResolve,
  promiseThen,
  quote,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringStartsWith,
} from "./primordials.js";

const BLOB_PLACE = /blob:null\/[0-9a-f-]+:(\d+):(\d+)/;
const SCRIPT = "blob:null/program"; // the name of the program in stacks
const BEGIN = "$$begin();";
const EXPORT = "export default ";
const STRICT = '"use strict";(';

/** Returns a promise for the module of a program. `started` is called before its first statement. */
export function load(setup, started) {
  const { code, dialect, entry, typed } = setup;
  if (dialect === "javascript" && entry !== "value" && stringStartsWith(code, EXPORT)) {
    const made = evalContext(`${STRICT}${stringSlice(code, EXPORT.length)})`, SCRIPT);
    if (made[1] === null) {
      setPrefix(STRICT.length - EXPORT.length);
      started();
      return promiseResolve({ __proto__: null, default: made[0] });
    }
    if (!made[1].isCompileError) return promiseReject(made[1].thrown);
  }
  // It is more than a function, or can't be parsed: the compiler gives a better error.
  return typed ? loadModule(typed, "typescript", started) : loadModule(code, dialect, started);
}

function loadModule(code, dialect, started) {
  defineProperty(globalThis, "$$begin", {
    __proto__: null,
    configurable: true,
    enumerable: false,
    value: () => {
      deleteProperty(globalThis, "$$begin");
      started();
    },
  });
  setPrefix(BEGIN.length);
  const type = dialect === "typescript" ? "application/typescript" : "text/javascript";
  const url = createObjectURL(new Blob_([BEGIN + code], { type }));
  return promiseThen(import(url), (module) => {
    revokeObjectURL(url);
    return module;
  });
}

/** Returns JSON text for a program that Deno could not load: a syntax error with its place. */
export function describeLoad(thrown) {
  const message = text(read(thrown, "message") ?? thrown);
  const end = stringIndexOf(message, "\n");
  let first = end < 0 ? message : stringSlice(message, 0, end);
  const at = stringIndexOf(first, " at blob:");
  if (at >= 0) first = stringSlice(first, 0, at);
  first = stringReplaceAll(first, "SyntaxError: ", "");
  const where = place(message, BLOB_PLACE, ownColumn) || place(read(thrown, "stack"), BLOB_PLACE, ownColumn);
  if (read(thrown, "name") !== "SyntaxError" && !stringStartsWith(message, "SyntaxError")) return describe(thrown);
  return `{"type":"SyntaxError","load":true,"message":${quote(first)}${where}}`;
}
