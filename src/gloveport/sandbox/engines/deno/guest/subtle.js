// The part of crypto.subtle that a replay can repeat.

import { platform } from "./platform.js";
import {
  apply,
  create,
  defineProperty,
  Error_,
  getOwnPropertyDescriptor,
  stringSlice,
  Uint8Array_,
} from "./primordials.js";
import { fill } from "./random.js";

// The operations of crypto.subtle whose result does not depend on the engine's own randomness.
const REPEATABLE = ["decrypt", "deriveBits", "deriveKey", "digest", "exportKey", "importKey", "unwrapKey", "verify"];
const REPEATABLE_ALGORITHMS = create(null);
for (const name of ["HMAC", "ED25519", "RSASSA-PKCS1-V1_5", "AES-GCM", "AES-CBC", "AES-CTR", "AES-KW"]) {
  REPEATABLE_ALGORITHMS[name] = true;
}
const SAFE_WITH_THOSE = ["sign", "encrypt", "wrapKey"];
const { toUpperCase } = String.prototype;
const readCrypto = getOwnPropertyDescriptor(globalThis, "crypto").get;

function algorithmName(algorithm) {
  return apply(toUpperCase, `${typeof algorithm === "string" ? algorithm : algorithm?.name}`, []);
}

/** Adds `subtle` to the guest's crypto. It is created on first use, because loading the engine's is slow. */
export function addSubtle(crypto) {
  let subtle;
  defineProperty(crypto, "subtle", {
    __proto__: null,
    get: () => subtle ??= makeSubtle(apply(readCrypto, globalThis, []).subtle),
    enumerable: true,
    configurable: true,
  });
}

// A subtle crypto whose operations run through `platform` (counted, one after the other). The program may have replaced the
// iterator of arrays by then.
function makeSubtle(subtle) {
  const guest = {};
  const add = (name, run) =>
    defineProperty(guest, name, { __proto__: null, value: run, enumerable: true, writable: true, configurable: true });
  for (let index = 0; index < REPEATABLE.length; index++) {
    const name = REPEATABLE[index];
    const original = subtle[name];
    add(name, (...args) => platform(() => apply(original, subtle, args)));
  }
  for (let index = 0; index < SAFE_WITH_THOSE.length; index++) {
    const name = SAFE_WITH_THOSE[index];
    const original = subtle[name];
    add(name, (...args) =>
      platform(() => {
        const algorithm = algorithmName(name === "wrapKey" ? args[3] : args[0]);
        if (!REPEATABLE_ALGORITHMS[algorithm]) throw notRepeatable(`${name} with ${algorithm}`);
        return apply(original, subtle, args);
      }));
  }
  const { importKey } = subtle;
  add("generateKey", (algorithm, extractable, usages) =>
    platform(() => {
      const name = algorithmName(algorithm);
      const bits = name === "HMAC" ? algorithm.length ?? 512 : algorithm.length;
      if (!(name === "HMAC" || stringSlice(name, 0, 4) === "AES-")) throw notRepeatable(`generateKey for ${name}`);
      const raw = new Uint8Array_(bits / 8);
      fill(raw);
      return apply(importKey, subtle, ["raw", raw, algorithm, extractable, usages]);
    }));
  return guest;
}

function notRepeatable(what) {
  const error = new Error_(`${what} is not offered here: its result would differ when the run is replayed`);
  defineProperty(error, "name", { __proto__: null, value: "NotSupportedError" });
  return error;
}
