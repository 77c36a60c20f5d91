// Errors as data: the error of a tool call, and the description of what the program threw.

import { inspect, limitOf } from "./engine.js";
import {
  defineProperty,
  Error_,
  hasOwn,
  isSafeInteger,
  Number_,
  numberToString,
  quote,
  regexpExec,
  stringIndexOf,
  stringSlice,
} from "./primordials.js";
import { stackOf } from "./stacks.js";
import { BadValue, encode } from "./values.js";

const MAX_MESSAGE = 64 * 1024;
const PLACE = /program\.ts:(\d+):(\d+)/;

/** The error of a failed tool call, with the same fields as the host's ToolError. */
export class ToolError extends Error_ {
  constructor(message, fields, site) {
    super(message);
    for (const name of ["code", "origin", "tool", "status", "data", "retryable", "hint"]) {
      const value = fields !== undefined && hasOwn(fields, name) ? fields[name] : undefined;
      defineProperty(this, name, {
        __proto__: null,
        value,
        writable: true,
        enumerable: value !== undefined,
        configurable: true,
      });
    }
    if (site !== undefined) {
      const noted = stackOf(site);
      const below = stringIndexOf(noted, "\n    at ");
      const stack = `ToolError: ${message}${below < 0 ? "" : stringSlice(noted, below)}`;
      defineProperty(this, "stack", {
        __proto__: null,
        value: stack,
        writable: true,
        enumerable: false,
        configurable: true,
      });
    }
  }
}
defineProperty(ToolError.prototype, "name", {
  __proto__: null,
  value: "ToolError",
  writable: true,
  configurable: true,
});

/** Returns a value in words. */
export function text(value) {
  try {
    const string = typeof value === "string" ? value : inspect(value, { colors: false });
    return stringSlice(string, 0, MAX_MESSAGE);
  } catch {
    return "a value that can't be shown";
  }
}

/** Reads a member of an object whose getters may throw. */
export function read(value, name) {
  try {
    return value[name];
  } catch {
    return undefined;
  }
}

function field(name, value) {
  return `,${quote(name)}:${value}`;
}

/** Returns the line and column of the first match of `pattern` in a text; nothing when there is none. */
export function place(stack, pattern, shift = (_line, column) => column) {
  const found = typeof stack === "string" ? regexpExec(pattern, stringSlice(stack, 0, 65536)) : null;
  if (found === null) return "";
  const line = Number_(found[1]);
  return field("line", line) + field("column", shift(line, Number_(found[2])));
}

function data(value) {
  try {
    const encoded = encode(value, "data");
    return encoded.length < MAX_MESSAGE ? encoded : "null";
  } catch {
    return "null";
  }
}

/** Returns JSON text that describes what the program threw: an error or any other value. */
export function describe(thrown, depth = 0) {
  const limit = limitOf(thrown);
  if (!(thrown instanceof Error_)) {
    if (limit !== undefined) return `{"type":"RangeError","code":${quote(limit)},"message":"out of memory"}`;
    const type = thrown === null ? "null" : typeof thrown;
    return `{"type":${quote(type)},"message":${quote(text(thrown))}}`;
  }
  const name = read(thrown, "name");
  const message = read(thrown, "message");
  let out = `{"type":${quote(typeof name === "string" ? stringSlice(name, 0, 200) : "Error")}`;
  out += field("message", quote(text(typeof message === "string" ? message : "")));
  out += place(read(thrown, "stack"), PLACE);
  if (limit !== undefined) out += field("code", quote(limit));
  if (thrown instanceof BadValue) out += field("code", '"bad-value"');
  if (thrown instanceof ToolError) {
    for (const key of ["code", "tool", "hint"]) {
      const value = read(thrown, key);
      if (typeof value === "string") out += field(key, quote(stringSlice(value, 0, 1000)));
    }
    const status = read(thrown, "status");
    if (isSafeInteger(status)) out += field("status", numberToString(status));
    out += field("data", data(read(thrown, "data")));
  }
  const cause = read(thrown, "cause");
  if (cause !== undefined && depth < 8) out += field("cause", describe(cause, depth + 1));
  return out + "}";
}
