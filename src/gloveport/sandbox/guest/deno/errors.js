// What went wrong, as data: stacks that show only the program's own lines, and the description of an uncaught error.

import {
  captureStackTrace,
  create,
  defineProperty,
  Error_,
  errorToString,
  getOwnPropertyDescriptor,
  hasOwn,
  inspect,
  isSafeInteger,
  Number_,
  numberToString,
  quote,
  regexpExec,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringStartsWith,
} from "./primordials.js";
import { BadValue, encode } from "./values.js";

// The trap of `tools`, and the line of the program. Defined, not assigned: the guest may have put an accessor there.
const FEW = { __proto__: null, value: 2, writable: true, enumerable: true, configurable: true };
const PROGRAM = "program.ts";
const MAX_MESSAGE = 64 * 1024;
const PLACE = /program\.ts:(\d+):(\d+)/;
const BLOB_PLACE = /blob:null\/[0-9a-f-]+:(\d+):(\d+)/;

let prefix = 0; // how many columns the prelude put before the first line of the program

export function setPrefix(columns) {
  prefix = columns;
}

function ownColumn(line, column) {
  return line === 1 ? column - prefix : column;
}

// Guest-visible stacks: no prelude frames, and a fixed name in place of the blob's random one.
function isOwn(site) {
  const file = site.getFileName();
  return typeof file === "string" && stringStartsWith(file, "blob:");
}

function nameOf(site) {
  const name = site.getFunctionName();
  return name === "default" ? null : name;
}

function textOf(site) {
  const line = site.getLineNumber();
  const place = `${PROGRAM}:${line}:${ownColumn(line, site.getColumnNumber())}`;
  const name = nameOf(site);
  return `${site.isAsync() ? "async " : ""}${name ? `${name} (${place})` : place}`;
}

// What the program's own Error.prepareStackTrace gets: the engine's sites would tell it the blob's name.
function siteFor(site) {
  const line = site.getLineNumber();
  const column = ownColumn(line, site.getColumnNumber());
  const name = nameOf(site);
  const text = textOf(site);
  const isAsync = site.isAsync();
  const isConstructor = site.isConstructor();
  const isToplevel = site.isToplevel();
  return {
    __proto__: null,
    getFileName: () => PROGRAM,
    getScriptNameOrSourceURL: () => PROGRAM,
    getLineNumber: () => line,
    getColumnNumber: () => column,
    getFunctionName: () => name,
    getMethodName: () => null,
    getTypeName: () => null,
    getThis: () => undefined,
    getFunction: () => undefined,
    getEvalOrigin: () => undefined,
    isAsync: () => isAsync,
    isConstructor: () => isConstructor,
    isToplevel: () => isToplevel,
    isEval: () => false,
    isNative: () => false,
    toString: () => text,
  };
}

let theirs; // the program's own function, for the stacks that it reads itself
let reading = false; // we read a stack, which must not run code of the program

function prepareStackTrace(error, sites) {
  if (!reading && typeof theirs === "function" && theirs !== prepareStackTrace) return theirs(error, sitesFor(sites));
  let out;
  try {
    out = errorToString(error);
  } catch {
    out = "Error";
  }
  for (let index = 0; index < sites.length; index++) {
    if (isOwn(sites[index])) out += `\n    at ${textOf(sites[index])}`;
  }
  return out;
}

function sitesFor(sites) {
  const out = [];
  for (let index = 0; index < sites.length; index++) {
    if (isOwn(sites[index])) put(out, out.length, siteFor(sites[index]));
  }
  return out;
}

function put(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

/** The stack of a call site that was noted, as we write it. */
export function stackOf(site) {
  reading = true;
  try {
    return site.stack;
  } finally {
    reading = false;
  }
}

/** A tool call failed; the same fields as the host's ToolError. */
export class ToolError extends Error_ {
  constructor(message, fields, site) {
    super(message);
    for (const name of ["code", "tool", "status", "data", "retryable", "hint"]) {
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

/** Remembers where the program is now, for an error that will be made later. */
export function callSite(below) {
  const site = create(null);
  const before = getOwnPropertyDescriptor(Error_, "stackTraceLimit");
  defineProperty(Error_, "stackTraceLimit", FEW); // at every call: twenty frames would cost 15 µs, these two do not
  captureStackTrace(site, below);
  if (before !== undefined) defineProperty(Error_, "stackTraceLimit", before);
  return site;
}

function text(value) {
  try {
    const string = typeof value === "string" ? value : inspect(value, { colors: false });
    return stringSlice(string, 0, MAX_MESSAGE);
  } catch {
    return "a value that can't be shown";
  }
}

function read(value, name) {
  try {
    return value[name];
  } catch {
    return undefined;
  }
}

function field(name, value) {
  return `,${quote(name)}:${value}`;
}

function place(stack, pattern, shift) {
  const found = typeof stack === "string" ? regexpExec(pattern, stringSlice(stack, 0, 65536)) : null;
  if (found === null) return "";
  const line = Number_(found[1]);
  return field("line", line) + field("column", shift ? ownColumn(line, Number_(found[2])) : Number_(found[2]));
}

function data(value) {
  try {
    const encoded = encode(value, "data");
    return encoded.length < MAX_MESSAGE ? encoded : "null";
  } catch {
    return "null";
  }
}

/** JSON text that describes what the program threw: an error, or any other value. */
export function describe(thrown, depth = 0) {
  if (!(thrown instanceof Error_)) {
    const type = thrown === null ? "null" : typeof thrown;
    return `{"type":${quote(type)},"message":${quote(text(thrown))}}`;
  }
  const name = read(thrown, "name");
  const message = read(thrown, "message");
  let out = `{"type":${quote(typeof name === "string" ? stringSlice(name, 0, 200) : "Error")}`;
  out += field("message", quote(text(typeof message === "string" ? message : "")));
  out += place(read(thrown, "stack"), PLACE, false);
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

/** JSON text for a program that the engine could not load: a syntax error with its place. */
export function describeLoad(thrown) {
  const message = text(read(thrown, "message") ?? thrown);
  const end = stringIndexOf(message, "\n");
  let first = end < 0 ? message : stringSlice(message, 0, end);
  const at = stringIndexOf(first, " at blob:");
  if (at >= 0) first = stringSlice(first, 0, at);
  first = stringReplaceAll(first, "SyntaxError: ", "");
  const where = place(message, BLOB_PLACE, true) || place(read(thrown, "stack"), BLOB_PLACE, true);
  const cause = read(thrown, "name") === "SyntaxError" || stringStartsWith(message, "SyntaxError") ? "SyntaxError" : "";
  if (!cause) return describe(thrown);
  return `{"type":"SyntaxError","load":true,"message":${quote(first)}${where}}`;
}

export function installErrors() {
  defineProperty(Error_, "prepareStackTrace", {
    __proto__: null,
    get: () => prepareStackTrace,
    set: (value) => {
      theirs = value;
    },
    enumerable: false,
    configurable: false,
  });
  Error_.stackTraceLimit = 20;
}
