// What guest code finds: an allow-list of the platform's globals, and ours. Whatever a new engine version adds stays out
// until it is listed here.

import { installClock } from "./clock.js";
import { installErrors, ToolError } from "./errors.js";
import { log, makeOutput } from "./output.js";
import { platform } from "./platform.js";
import {
  apply,
  create,
  defineProperty,
  deleteProperty,
  freeze,
  getOwnPropertyDescriptor,
  keys,
  ownKeys,
  Promise_,
  setImmediate_,
  String_,
  stringSlice,
} from "./primordials.js";
import { installRandom } from "./random.js";
import { timerGlobals } from "./timers.js";

const LANGUAGE =
  `Object Function Array Number parseFloat parseInt Infinity NaN undefined Boolean String Symbol Promise RegExp
Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError SuppressedError globalThis JSON Math
Intl ArrayBuffer Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array BigUint64Array BigInt64Array
Uint8ClampedArray Float16Array Float32Array Float64Array DataView Map BigInt Set Iterator WeakMap WeakSet Proxy Reflect
decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape eval isFinite isNaN DisposableStack
AsyncDisposableStack Temporal`;

const PLATFORM = `queueMicrotask AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream
CountQueuingStrategy CustomEvent DecompressionStream DOMException ErrorEvent Event EventTarget File FormData Headers
MessageEvent ReadableStream ReadableStreamDefaultReader Request Response TextDecoder TextEncoder TextDecoderStream
TextEncoderStream TransformStream URL URLPattern URLSearchParams WritableStream WritableStreamDefaultWriter
WritableStreamDefaultController ReadableByteStreamController ReadableStreamBYOBReader ReadableStreamBYOBRequest
ReadableStreamDefaultController TransformStreamDefaultController atob btoa structuredClone CryptoKey`;

const kept = create(null);
for (const name of `${LANGUAGE} ${PLATFORM}`.split(/\s+/)) kept[name] = true;

function define(name, value) {
  defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

function refuseFetch() {
  return new Promise_((_resolve, reject) =>
    reject(
      new ToolError("fetch is refused: the sandbox has no network", {
        code: "egress-denied",
        hint: "call a tool instead; the host makes the request",
      }),
    )
  );
}

function makeProcess(env) {
  const write = (level) => ({ write: (text) => (log(level, stringSlice(String_(text), 0)), true) });
  return {
    env,
    argv: [],
    platform: "linux",
    version: "v24.0.0",
    versions: { node: "24.0.0" },
    cwd: () => "/workspace",
    nextTick: (run, ...args) => queueMicrotask(() => apply(run, undefined, args)),
    exit: () => {
      throw new ToolError("process.exit is not offered here: return from the program", { code: "program-failed" });
    },
    stdout: write("log"),
    stderr: write("error"),
  };
}

const { queueMicrotask } = globalThis;

function wasmGlobals(original) {
  const guest = {};
  for (
    const name of [
      "Module",
      "Instance",
      "Memory",
      "Table",
      "Global",
      "Tag",
      "CompileError",
      "LinkError",
      "RuntimeError",
    ]
  ) {
    if (original[name] !== undefined) guest[name] = original[name];
  }
  guest.validate = (bytes) => original.validate(bytes);
  guest.compile = (bytes) => platform(() => original.compile(bytes));
  guest.instantiate = (source, imports) => platform(() => original.instantiate(source, imports));
  return guest;
}

// Things that stay but have a member which tells the time, makes randomness or reaches another thread.
function trim() {
  const { AbortController, DOMException } = globalThis;
  deleteProperty(URL, "createObjectURL");
  deleteProperty(URL, "revokeObjectURL");
  defineProperty(AbortSignal, "timeout", {
    __proto__: null,
    value: (delay) => {
      const controller = new AbortController();
      timerGlobals.setTimeout(() => controller.abort(new DOMException("Signal timed out.", "TimeoutError")), delay);
      return controller.signal;
    },
    writable: true,
    configurable: true,
  });
  const lastModified = getOwnPropertyDescriptor(File.prototype, "lastModified");
  if (lastModified) {
    defineProperty(File.prototype, "lastModified", {
      __proto__: null,
      get: () => 0,
      configurable: true,
    });
  }
  const stamp = getOwnPropertyDescriptor(Event.prototype, "timeStamp");
  if (stamp) defineProperty(Event.prototype, "timeStamp", { __proto__: null, get: () => 0, configurable: true });
}

/** Replaces the platform's globals by what a guest may have. */
export function installGlobals(allowWasm) {
  const wasm = allowWasm ? globalThis.WebAssembly : undefined;
  const { Buffer } = globalThis;
  const clock = installClock();
  const ours = { ...clock, ...installRandom(platform), ...makeOutput(clock.performance.now), ...timerGlobals };
  installErrors();
  trim();
  for (const name of ownKeys(globalThis)) {
    if (typeof name === "string" && !kept[name]) deleteProperty(globalThis, name);
  }
  for (const name of keys(ours)) define(name, ours[name]);
  if (Buffer !== undefined) define("Buffer", Buffer);
  if (wasm !== undefined) define("WebAssembly", wasmGlobals(wasm));
  define("fetch", refuseFetch);
  define("ToolError", ToolError);
  define("self", globalThis);
  define("global", globalThis);
  define(
    "navigator",
    freeze({ userAgent: "Gloveport", language: "en-US", languages: ["en-US"], hardwareConcurrency: 1 }),
  );
  define("step", async (_name, run) => await run());
}

/** The globals that belong to one run. */
export function installRun(setup) {
  define("process", makeProcess(setup.env));
  define("state", {});
  if (setup.has_input) define("input", setup.input);
}

export { setImmediate_ as nextTurn };
