// The parts of Deno's platform that a guest keeps, and those that are removed.

import { nodeBuffer } from "./builtins.js";
import { turnIntl, turnTemporal } from "./calendar.js";
import { installClock } from "./clock.js";
import { define, installGlobals } from "./globals.js";
import { makeOutput } from "./output.js";
import { platform } from "./platform.js";
import { defineProperty, deleteProperty, getOwnPropertyDescriptor, regexpExec, stringIncludes } from "./primordials.js";
import { installRandom } from "./random.js";
import { installStacks } from "./stacks.js";
import { addSubtle } from "./subtle.js";
import { timerGlobals } from "./timers.js";

const PLATFORM = `queueMicrotask AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream
CountQueuingStrategy CustomEvent DecompressionStream DOMException ErrorEvent Event EventTarget File FormData Headers
MessageEvent ReadableStream ReadableStreamDefaultReader Request Response TextDecoder TextEncoder TextDecoderStream
TextEncoderStream TransformStream URL URLPattern URLSearchParams WritableStream WritableStreamDefaultWriter
WritableStreamDefaultController ReadableByteStreamController ReadableStreamBYOBReader ReadableStreamBYOBRequest
ReadableStreamDefaultController TransformStreamDefaultController atob btoa structuredClone CryptoKey`;

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

// Objects that stay but have a member that reads the time, makes randomness or reaches another thread.
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

let temporal = null; // the descriptor, while the global is away
let hasTemporal = false;
let hasBuffer = false;

/**
 * Defines globals that are slow to create, if the program mentions them: Temporal, and Node's Buffer. It is called for the
 * modules first, if these are loaded before the program comes.
 */
export function installMentioned(code, isProgram = true) {
  if (!hasTemporal) {
    hasTemporal = stringIncludes(code, "Temporal");
    if (!hasTemporal) {
      if (!isProgram) temporal = getOwnPropertyDescriptor(globalThis, "Temporal");
      deleteProperty(globalThis, "Temporal");
    } else {
      if (temporal !== null) defineProperty(globalThis, "Temporal", temporal);
      turnTemporal();
    }
  }
  if (!hasBuffer && stringIncludes(code, "Buffer") && regexpExec(/\bBuffer\b/, code) !== null) {
    hasBuffer = true;
    define("Buffer", nodeBuffer());
  }
}

/** Replaces Deno's globals by those that a guest may have. */
export function installSurroundings(allowWasm) {
  const { WebAssembly } = globalThis;
  const clock = installClock();
  turnIntl();
  const random = installRandom();
  addSubtle(random.crypto);
  installStacks();
  trim();
  installGlobals(PLATFORM, {
    ...clock,
    ...random,
    ...makeOutput(clock.performance.now),
    ...timerGlobals,
    WebAssembly: allowWasm ? wasmGlobals(WebAssembly) : undefined,
  });
}
