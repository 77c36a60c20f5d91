// How a program becomes a module in Deno: imported from a blob, because the static graph of the entry may read any file.

import { Blob_, createObjectURL, revokeObjectURL } from "./engine.js";
import { describe, place, read, text } from "./errors.js";
import { ownColumn, setPrefix } from "./frames.js";
import {
  defineProperty,
  deleteProperty,
  promiseThen,
  quote,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringStartsWith,
} from "./primordials.js";

const BLOB_PLACE = /blob:null\/[0-9a-f-]+:(\d+):(\d+)/;
const BEGIN = "$$begin();";

/** A promise for the module of a program, whose first statement calls `started`. */
export function load(code, dialect, started) {
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

/** JSON text for a program that Deno could not load: a syntax error with its place. */
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
