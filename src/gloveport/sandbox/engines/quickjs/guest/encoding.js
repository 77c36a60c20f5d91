// TextEncoder and TextDecoder for UTF-8, as in the Encoding standard. Other encodings are refused by name.

import {
  codePointAt,
  fromCharCode,
  isView,
  min,
  RangeError_,
  stringSlice,
  TypeError_,
  Uint8Array_,
  uncurry,
  view,
} from "./primordials.js";

const charCodeAt = uncurry(String.prototype.charCodeAt);
const toWellFormed = uncurry(String.prototype.toWellFormed);
const toLowerCase = uncurry(String.prototype.toLowerCase);
const trim = uncurry(String.prototype.trim);
const NAMES = { __proto__: null, "utf-8": true, utf8: true, "unicode-1-1-utf-8": true };
const CHUNK = 4096;

function writeUtf8(text, target, limit) {
  let read = 0;
  let written = 0;
  while (read < text.length) {
    const point = codePointAt(text, read);
    const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (written + size > limit) break;
    if (size === 1) target[written++] = point;
    else {
      target[written++] = (size === 2 ? 0xc0 : size === 3 ? 0xe0 : 0xf0) | (point >> (6 * (size - 1)));
      for (let rest = size - 2; rest >= 0; rest--) target[written++] = 0x80 | ((point >> (6 * rest)) & 0x3f);
    }
    read += size === 4 ? 2 : 1;
  }
  return { read, written };
}

function sizeOf(text) {
  let size = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = charCodeAt(text, index);
    if (unit < 0x80) size += 1;
    else if (unit < 0x800) size += 2;
    else if (unit >= 0xd800 && unit < 0xdc00) {
      size += 4;
      index++;
    } else size += 3;
  }
  return size;
}

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(text = "") {
    const whole = toWellFormed(`${text}`);
    const size = sizeOf(whole);
    const bytes = new Uint8Array_(size);
    writeUtf8(whole, bytes, size);
    return bytes;
  }
  encodeInto(text, target) {
    return writeUtf8(toWellFormed(`${text}`), target, target.length);
  }
}

function bytesOf(given) {
  if (given === undefined) return new Uint8Array_(0);
  if (isView(given)) return new Uint8Array_(given.buffer, given.byteOffset, given.byteLength);
  return new Uint8Array_(given);
}

export class TextDecoder {
  #fatal;
  #ignoreBom;
  #left = new Uint8Array_(0);
  #begun = false;
  constructor(label = "utf-8", options = {}) {
    const name = toLowerCase(trim(`${label}`));
    if (!NAMES[name]) {
      throw new RangeError_(`the engine \`quickjs\` decodes UTF-8 only, not '${label}'; the engine \`deno\` has it`);
    }
    this.#fatal = !!options?.fatal;
    this.#ignoreBom = !!options?.ignoreBOM;
  }
  get encoding() {
    return "utf-8";
  }
  get fatal() {
    return this.#fatal;
  }
  get ignoreBOM() {
    return this.#ignoreBom;
  }
  decode(given, options) {
    const stream = !!options?.stream;
    let bytes = bytesOf(given);
    if (this.#left.length) {
      const joined = new Uint8Array_(this.#left.length + bytes.length);
      for (let index = 0; index < this.#left.length; index++) joined[index] = this.#left[index];
      for (let index = 0; index < bytes.length; index++) joined[this.#left.length + index] = bytes[index];
      bytes = joined;
    }
    const end = stream ? wholeEnd(bytes) : bytes.length;
    this.#left = stream
      ? new Uint8Array_(view(bytes.buffer, bytes.byteOffset + end, bytes.byteOffset + bytes.length))
      : new Uint8Array_(0);
    let text = readUtf8(bytes, end, this.#fatal);
    if (!this.#begun && !this.#ignoreBom && charCodeAt(text, 0) === 0xfeff) text = stringSlice(text, 1);
    this.#begun = stream && (this.#begun || text !== "" || end > 0);
    return text;
  }
}

function needOf(byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return 1;
  if (byte >= 0xe0 && byte <= 0xef) return 2;
  return byte >= 0xf0 && byte <= 0xf4 ? 3 : 0;
}

// The bounds of the second byte exclude overlong forms, surrogates and code points beyond Unicode.
function fits(first, second) {
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

/** Returns the offset of an incomplete character at the end. */
function wholeEnd(bytes) {
  for (let back = 1; back <= min(3, bytes.length); back++) {
    const at = bytes.length - back;
    if (bytes[at] >= 0xc0) {
      const unfinished = needOf(bytes[at]) >= back && (back === 1 || fits(bytes[at], bytes[at + 1]));
      return unfinished ? at : bytes.length;
    }
    if (bytes[at] < 0x80) break;
  }
  return bytes.length;
}

function readUtf8(bytes, end, fatal) {
  let text = "";
  let part = "";
  for (let at = 0; at < end;) {
    const first = bytes[at++];
    let point = first;
    if (first >= 0x80) {
      const need = needOf(first);
      let got = 0;
      point = first & (0x3f >> need);
      while (
        got < need && at < end && (got ? bytes[at] >= 0x80 && bytes[at] <= 0xbf : fits(first, bytes[at]))
      ) {
        point = (point << 6) | (bytes[at++] & 0x3f);
        got++;
      }
      if (!need || got < need) {
        if (fatal) throw new TypeError_("The encoded data was not valid for encoding utf-8");
        point = 0xfffd;
      }
    }
    part += point < 0x10000 ? fromCharCode(point) : fromCharCode(0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
    if (part.length > CHUNK) {
      text += part;
      part = "";
    }
  }
  return text + part;
}
