// Randomness from the run's seed: ChaCha20 keyed by the 32 bytes that the host sent. It is strong enough for keys and the
// same on every replay.

import {
  ArrayBuffer_,
  create,
  defineProperty,
  isView,
  min,
  numberToString,
  setBytes,
  stringSlice,
  typedArrayBuffer,
  typedArrayByteLength,
  typedArrayByteOffset,
  typedArrayTag,
  TypeError_,
  Uint32Array_,
  Uint8Array_,
  view,
} from "./primordials.js";

const state = new Uint32Array_(16);
const blockBuffer = new ArrayBuffer_(64);
const block = new Uint32Array_(blockBuffer);
let used = 64;

export function seed(key) {
  const words = new Uint32Array_(typedArrayBuffer(key), typedArrayByteOffset(key), 8);
  state[0] = 0x61707865;
  state[1] = 0x3320646e;
  state[2] = 0x79622d32;
  state[3] = 0x6b206574;
  for (let index = 0; index < 8; index++) state[4 + index] = words[index];
  for (let index = 12; index < 16; index++) state[index] = 0;
  used = 64;
}

function quarter(a, b, c, d) {
  block[a] += block[b];
  let x = block[d] ^ block[a];
  block[d] = (x << 16) | (x >>> 16);
  block[c] += block[d];
  x = block[b] ^ block[c];
  block[b] = (x << 12) | (x >>> 20);
  block[a] += block[b];
  x = block[d] ^ block[a];
  block[d] = (x << 8) | (x >>> 24);
  block[c] += block[d];
  x = block[b] ^ block[c];
  block[b] = (x << 7) | (x >>> 25);
}

function refill() {
  for (let index = 0; index < 16; index++) block[index] = state[index];
  for (let round = 0; round < 10; round++) {
    quarter(0, 4, 8, 12);
    quarter(1, 5, 9, 13);
    quarter(2, 6, 10, 14);
    quarter(3, 7, 11, 15);
    quarter(0, 5, 10, 15);
    quarter(1, 6, 11, 12);
    quarter(2, 7, 8, 13);
    quarter(3, 4, 9, 14);
  }
  for (let index = 0; index < 16; index++) block[index] += state[index];
  if (++state[12] === 0) state[13]++;
  used = 0;
}

/** Fills an array with random bytes. */
export function fill(bytes) {
  const length = typedArrayByteLength(bytes);
  let done = 0;
  while (done < length) {
    if (used === 64) refill();
    const step = min(64 - used, length - done);
    setBytes(bytes, view(blockBuffer, used, used + step), done);
    used += step;
    done += step;
  }
}

function random() {
  if (used > 56) refill();
  const at = used >>> 2;
  used = (at + 2) << 2;
  return ((block[at] >>> 5) * 0x4000000 + (block[at + 1] >>> 6)) / 0x20000000000000;
}

const INTEGER_ARRAYS = create(null);
for (
  const name of [
    "Int8Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "Int16Array",
    "Uint16Array",
    "Int32Array",
    "Uint32Array",
    "BigInt64Array",
    "BigUint64Array",
  ]
) {
  INTEGER_ARRAYS[name] = true;
}

function getRandomValues(array) {
  if (!isView(array) || !INTEGER_ARRAYS[typedArrayTag(array)]) {
    throw new TypeError_("getRandomValues takes an integer typed array");
  }
  const length = typedArrayByteLength(array);
  if (length > 65536) throw new TypeError_(`getRandomValues gives at most 65536 bytes at once, not ${length}`);
  fill(new Uint8Array_(typedArrayBuffer(array), typedArrayByteOffset(array), length));
  return array;
}

function randomUUID() {
  const bytes = new Uint8Array_(16);
  fill(bytes);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  let out = "";
  for (let index = 0; index < 16; index++) {
    if (index === 4 || index === 6 || index === 8 || index === 10) out += "-";
    out += stringSlice(numberToString(bytes[index] + 256, 16), 1);
  }
  return out;
}

/** Returns the `crypto` that replaces the platform's, and makes Math.random use the seed. */
export function installRandom() {
  defineProperty(Math, "random", {
    __proto__: null,
    value: random,
    writable: true,
    enumerable: false,
    configurable: true,
  });
  return { crypto: { getRandomValues, randomUUID } };
}
