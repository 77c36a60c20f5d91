// The modules of Node that Deno has, and the script with the modules that the host sends.

import { evalContext } from "./engine.js";
import { define, workspace } from "./globals.js";
import {
  apply,
  create,
  deleteProperty,
  freeze,
  getOwnPropertyDescriptor,
  promiseReject,
  promiseThen,
} from "./primordials.js";

const BEGIN = "(function (require, module, exports) {";
const loadBuffer = getOwnPropertyDescriptor(globalThis, "Buffer").get;
const { Atomics, SharedArrayBuffer } = globalThis;

// What Node's modules ask about their process while they load.
const PROCESS = freeze({
  __proto__: null,
  args: freeze([]),
  build: freeze({ __proto__: null, arch: "x86_64", os: "linux", target: "x86_64-unknown-linux-gnu" }),
  cwd: () => workspace.path,
  env: freeze({ __proto__: null, get: () => undefined, toObject: () => ({}) }),
  execPath: () => "/usr/bin/node",
  pid: 1,
  ppid: 0,
});

/** Returns Node's Buffer. Loading it is slow. */
export function nodeBuffer() {
  lend();
  try {
    return apply(loadBuffer, globalThis, []);
  } finally {
    takeBack();
  }
}

// The globals that Node's modules need while they load, and that a guest may not have.
function lend() {
  define("Atomics", Atomics);
  define("SharedArrayBuffer", SharedArrayBuffer);
}

function takeBack() {
  deleteProperty(globalThis, "Atomics");
  deleteProperty(globalThis, "SharedArrayBuffer");
}

function pick(found, names) {
  const out = create(null);
  for (let index = 0; index < names.length; index++) {
    if (found[names[index]] !== undefined) out[names[index]] = found[names[index]];
  }
  return out;
}

// The parts of a module whose results a replay can repeat: nothing that uses the engine's threads or its own randomness.
const REPEATABLE = {
  __proto__: null,
  async_hooks: ["AsyncLocalStorage", "AsyncResource"],
  crypto: [
    "Cipheriv",
    "Decipheriv",
    "Hash",
    "Hmac",
    "KeyObject",
    "constants",
    "createCipheriv",
    "createDecipheriv",
    "createHash",
    "createHmac",
    "createSecretKey",
    "getCiphers",
    "getHashes",
    "hash",
    "hkdfSync",
    "pbkdf2Sync",
    "scryptSync",
    "timingSafeEqual",
  ],
  zlib: [
    "brotliCompressSync",
    "brotliDecompressSync",
    "codes",
    "constants",
    "crc32",
    "deflateRawSync",
    "deflateSync",
    "gunzipSync",
    "gzipSync",
    "inflateRawSync",
    "inflateSync",
    "unzipSync",
  ],
};

// Randomness comes from the run's seed.
function withRandomness(parts, bufferOf) {
  const { crypto, Math } = globalThis;
  parts.randomUUID = () => crypto.randomUUID();
  parts.getRandomValues = (array) => crypto.getRandomValues(array);
  parts.randomFillSync = (array) => crypto.getRandomValues(array);
  parts.randomBytes = (size) => crypto.getRandomValues(bufferOf(size));
  parts.randomInt = (first, second) => {
    const [low, high] = typeof second === "number" ? [first, second] : [0, first];
    return low + Math.floor(Math.random() * (high - low));
  };
  parts.webcrypto = crypto;
  parts.subtle = crypto.subtle;
}

function repeatable(name, found) {
  if (REPEATABLE[name] === undefined) return found;
  const parts = pick(found, REPEATABLE[name]);
  if (name === "crypto") withRandomness(parts, nodeBuffer().alloc);
  return freeze({ __proto__: null, ...parts, default: freeze({ ...parts }) });
}

/** Returns a promise for the namespace of a built-in module. No code of the program runs meanwhile. */
export function loadBuiltIn(name) {
  lend();
  define("Deno", PROCESS);
  return promiseThen(import(`node:${name}`), (found) => {
    takeBack();
    deleteProperty(globalThis, "Deno");
    return repeatable(name, found);
  });
}

/** Returns the function that runs a script of CommonJS, without running it. */
export function loadScript(script) {
  const made = evalContext(`${BEGIN}${script}\n})`, "gloveport:modules");
  return made[1] === null ? made[0] : promiseReject(made[1].thrown);
}
