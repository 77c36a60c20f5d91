// The globals of guest code: an allow-list of the platform's, and ours. What a new engine version adds stays out until it
// is listed here.

import { ToolError } from "./errors.js";
import { fetch } from "./fetch.js";
import { log } from "./output.js";
import {
  apply,
  create,
  defineProperty,
  deleteProperty,
  freeze,
  keys,
  ownKeys,
  String_,
  stringSlice,
} from "./primordials.js";
import { step } from "./steps.js";

const LANGUAGE =
  `Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Promise RegExp
Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError SuppressedError globalThis JSON Math
Intl ArrayBuffer Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array BigUint64Array BigInt64Array
Uint8ClampedArray Float16Array Float32Array Float64Array DataView Map BigInt Set Iterator WeakMap WeakSet Proxy Reflect
decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval isFinite isNaN DisposableStack
AsyncDisposableStack Temporal`;

const kept = create(null);

/** Where a session has its files: the working directory, also of runs without a session. */
export const workspace = { __proto__: null, path: "/workspace" };

/** Defines a global for the guest, with the attributes of the language's own. */
export function define(name, value) {
  defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function makeProcess(env) {
  const write = (level) => ({ write: (text) => (log(level, stringSlice(String_(text), 0)), true) });
  return {
    env,
    argv: [],
    platform: "linux",
    version: "v24.0.0",
    versions: { node: "24.0.0" },
    cwd: () => workspace.path,
    nextTick: (run, ...args) => queue(() => apply(run, undefined, args)),
    exit: () => {
      throw new ToolError("process.exit is not offered here: return from the program", { code: "program-failed" });
    },
    stdout: write("log"),
    stderr: write("error"),
  };
}

let { queueMicrotask: queue } = globalThis;

/** Replaces the platform's globals by the guest's: the language, `names` of the platform, and `ours`. */
export function installGlobals(names, ours) {
  // Not with a regular expression: the first one in a process takes as long as all the rest of this.
  for (const line of `${LANGUAGE}\n${names}`.split("\n")) for (const name of line.split(" ")) kept[name] = true;
  for (const name of ownKeys(globalThis)) {
    if (typeof name === "string" && !kept[name]) deleteProperty(globalThis, name);
  }
  queue = ours.queueMicrotask ?? queue;
  for (const name of keys(ours)) if (ours[name] !== undefined) define(name, ours[name]);
  define("fetch", fetch);
  define("ToolError", ToolError);
  define("self", globalThis);
  define("global", globalThis);
  define(
    "navigator",
    freeze({ userAgent: "Gloveport", language: "en-US", languages: ["en-US"], hardwareConcurrency: 1 }),
  );
  define("step", step);
}

/** Defines `process`, with these environment variables. */
export function installProcess(env) {
  define("process", makeProcess(env));
}

/** Defines the globals of one run. */
export function installRun(setup) {
  installProcess(setup.env);
  define("state", setup.state ?? {});
  if (setup.has_input) define("input", setup.input);
}
