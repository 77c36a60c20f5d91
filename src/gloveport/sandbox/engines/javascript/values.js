// The value codec in the guest: only data crosses, by copy. encode() writes JSON text itself, because JSON.stringify would
// call `toJSON` of prototypes that guest code may have changed, and lose what needs a tag. It writes only long arrays in which
// neither can happen. gloveport/values.py lists the tags.

import { urlHref } from "./engine.js";
import {
  apply,
  ArrayBuffer_,
  ArrayPrototype,
  BigInt_,
  bigintToString,
  construct,
  create,
  dataViewBuffer,
  dataViewByteLength,
  dataViewByteOffset,
  Date_,
  dateGetTime,
  defineProperty,
  Error_,
  fromBase64,
  getPrototypeOf,
  hasOwn,
  isArray,
  isFiniteNumber,
  isInteger,
  isSafeInteger,
  isView,
  iterator,
  keys,
  Map_,
  mapForEach,
  Number_,
  numberToString,
  ObjectPrototype,
  ownKeys,
  quote,
  regexpExec,
  Set_,
  setForEach,
  String_,
  stringify,
  stringIncludes,
  stringSlice,
  toBase64,
  typedArrayBuffer,
  typedArrayByteLength,
  typedArrayByteOffset,
  typedArrayLength,
  typedArrayTag,
  TypeError_,
  Uint8Array_,
} from "./primordials.js";

const MAX_DEPTH = 112;
const MAX_DIGITS = 4000;
const MIN_DATE_MS = -62135596800000; // from the year 1 to the end of 9999, as Python's dates
const MAX_DATE_MS = 253402300799999;
const MAX_PATH_CHARS = 120;
const LONG_ARRAY = 32; // items; of a shorter one, looking first would take longer than it saves
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

class Crossing extends TypeError_ {}

/** A value that can't cross, with the path to it. Anything else that encode() throws is the program's own. */
export class BadValue extends TypeError_ {}

/** The current path in a value, read backwards once encoding fails. */
class Path {
  text = "";
  reason = undefined;
  isMixed = false; // once an array was found that JSON.stringify can't write: looking into each would take too long
}

/** Returns the JSON text of a value. Throws BadValue, with the path from `name`, for one that can't cross. */
export function encode(value, name) {
  const path = new Path();
  try {
    return write(value, 0, path);
  } catch (error) {
    if (path.reason === undefined) throw error;
    const place = path.text.length > MAX_PATH_CHARS ? `${stringSlice(path.text, 0, MAX_PATH_CHARS)}…` : path.text;
    throw new BadValue(`${name}${place} ${path.reason}`);
  }
}

function refuse(path, reason) {
  path.reason = reason;
  throw new Crossing(reason);
}

function write(value, depth, path) {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      return number(value);
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
      return '{"$":"undefined"}';
    case "bigint":
      return bigint(value, path);
    case "object":
      if (value === null) return "null";
      if (depth > MAX_DEPTH) refuse(path, "is nested too deeply, or contains itself");
      return isArray(value) ? array(value, depth, path) : object(value, depth, path);
    case "function":
      return refuse(path, "is a function: only data can cross; call it, or return what it gives");
    default:
      return refuse(path, "is a symbol: only data can cross");
  }
}

function bigint(value, path) {
  const digits = bigintToString(value);
  if (digits.length > MAX_DIGITS) refuse(path, `is an integer of more than ${MAX_DIGITS} digits`);
  return `{"$":"bigint","v":"${digits}"}`;
}

function number(value) {
  if (isFiniteNumber(value)) {
    if (value === 0) return 1 / value < 0 ? '{"$":"number","v":"-0"}' : "0";
    if (!isInteger(value) || isSafeInteger(value)) return numberToString(value);
  }
  return `{"$":"number","v":"${numberToString(value)}"}`;
}

function array(value, depth, path) {
  if (value.length >= LONG_ARRAY && !path.isMixed) {
    if (!("toJSON" in ArrayPrototype) && isPlain(value, depth)) {
      const text = stringify(value);
      if (!stringIncludes(text, "\\ud")) return text; // no lone surrogate, which `quote` replaces
    }
    path.isMixed = true;
  }
  let out = "[";
  for (let index = 0; index < value.length; index++) {
    if (index) out += ",";
    try {
      out += write(value[index], depth + 1, path);
    } catch (error) {
      path.text = `[${index}]${path.text}`;
      throw error;
    }
  }
  return out + "]";
}

/** Returns whether a value holds only what JSON.stringify writes as `write` does. */
function isPlain(value, depth) {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return isFiniteNumber(value) && (value === 0 ? 1 / value > 0 : !isInteger(value) || isSafeInteger(value));
    case "object":
      return value === null || (depth <= MAX_DEPTH && hasPlainItems(value, depth));
    default:
      return false;
  }
}

function hasPlainItems(value, depth) {
  const prototype = getPrototypeOf(value);
  if (isArray(value)) {
    if (prototype !== ArrayPrototype) return false;
    for (let index = 0; index < value.length; index++) if (!isPlain(value[index], depth + 1)) return false;
    return true;
  }
  if (prototype !== ObjectPrototype) return false;
  const names = keys(value);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name[0] === "$" || !isPlain(value[name], depth + 1)) return false;
  }
  return true;
}

function object(value, depth, path) {
  const prototype = getPrototypeOf(value);
  if (prototype === ObjectPrototype || prototype === null) return record(value, depth, path);
  return special(value, depth, path) ?? instance(value, depth, path);
}

function record(value, depth, path) {
  const names = keys(value);
  let out = "{";
  let first = true;
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    try {
      const item = value[name];
      if (item === undefined) continue;
      const text = write(item, depth + 1, path);
      out += `${first ? "" : ","}${quote(name[0] === "$" ? "$" + name : name)}:${text}`;
      first = false;
    } catch (error) {
      path.text = (regexpExec(IDENTIFIER, name) ? `.${name}` : `[${quote(name)}]`) + path.text;
      throw error;
    }
  }
  return out + "}";
}

// Built-in kinds are recognised by their internal slots (a getter that throws on anything else), never by a name that guest
// code can set.
function slot(read, value) {
  try {
    return read(value);
  } catch {
    return undefined;
  }
}

function special(value, depth, path) {
  if (value instanceof Error_) return error(value, depth, path);
  const time = slot(dateGetTime, value);
  if (time !== undefined) {
    if (time !== time) refuse(path, "is an invalid Date");
    if (time < MIN_DATE_MS || time > MAX_DATE_MS) refuse(path, "is a Date outside the years 1 to 9999");
    return `{"$":"date","v":${numberToString(time)}}`;
  }
  if (isView(value)) return view(value, depth, path);
  if (value instanceof ArrayBuffer_) return bytes(new Uint8Array_(value));
  if (value instanceof Map_) return map(value, depth, path);
  if (value instanceof Set_) return set(value, depth, path);
  const href = slot(urlHref, value);
  if (href !== undefined) return quote(href);
  return undefined;
}

function bytes(value) {
  return `{"$":"bytes","v":"${toBase64(value)}"}`;
}

function view(value, depth, path) {
  const tag = typedArrayTag(value);
  if (tag === undefined) {
    return bytes(new Uint8Array_(dataViewBuffer(value), dataViewByteOffset(value), dataViewByteLength(value)));
  }
  if (tag === "Uint8Array" || tag === "Uint8ClampedArray") {
    return bytes(new Uint8Array_(typedArrayBuffer(value), typedArrayByteOffset(value), typedArrayByteLength(value)));
  }
  let out = "[";
  const length = typedArrayLength(value);
  for (let index = 0; index < length; index++) out += (index ? "," : "") + write(value[index], depth + 1, path);
  return out + "]";
}

function map(value, depth, path) {
  let out = "";
  mapForEach(value, (item, key) => {
    if (typeof key === "object" && key !== null && slot(dateGetTime, key) === undefined) {
      refuse(path, "is a Map with an object as a key: use strings or numbers");
    }
    out += `${out ? "," : ""}[${write(key, depth + 1, path)},${write(item, depth + 1, path)}]`;
  });
  return `{"$":"map","v":[${out}]}`;
}

function set(value, depth, path) {
  let out = "";
  setForEach(value, (item) => {
    out += (out ? "," : "") + write(item, depth + 1, path);
  });
  return `{"$":"set","v":[${out}]}`;
}

const ERROR_OWN = create(null);
ERROR_OWN.stack =
  ERROR_OWN.message =
  ERROR_OWN.cause =
  ERROR_OWN.name =
  ERROR_OWN.errors =
    true;

function error(value, depth, path) {
  let out = `{"name":${quote(`${value.name}`)},"message":${quote(`${value.message}`)}`;
  if (hasOwn(value, "cause") && value.cause !== undefined && depth < 24) {
    out += `,"cause":${write(value.cause, depth + 2, path)}`;
  }
  const data = create(null);
  const names = keys(value);
  for (let index = 0; index < names.length; index++) {
    if (!ERROR_OWN[names[index]]) data[names[index]] = value[names[index]];
  }
  const extra = record(data, depth + 2, path);
  return `{"$":"error","v":${out}${extra === "{}" ? "" : `,"data":${extra}`}}}`;
}

function instance(value, depth, path) {
  const unboxed = unbox(value);
  if (unboxed !== value) return write(unboxed, depth, path);
  if (typeof value.then === "function") refuse(path, "is a promise: await it");
  if (typeof value.toJSON === "function") return write(apply(value.toJSON, value, [""]), depth + 1, path);
  if (typeof value[iterator] === "function" || typeof value.next === "function") {
    refuse(path, "is an iterator: use Array.from(…) to make it an array");
  }
  // A RegExp, a Response, a WeakMap: its content can't be read from outside, and `{}` would lose it silently.
  if (keys(value).length === 0 && ownKeys(getPrototypeOf(value)).length > 1) {
    refuse(path, "is an object whose data is hidden: only data can cross");
  }
  return record(value, depth, path);
}

function unbox(value) {
  if (value instanceof Number_ || value instanceof String_ || value instanceof BigInt_) return value.valueOf();
  return value;
}

/** Returns the value for parsed JSON, with its tags decoded. */
export function decode(value) {
  if (typeof value !== "object" || value === null) return value;
  if (isArray(value)) {
    for (let index = 0; index < value.length; index++) value[index] = decode(value[index]);
    return value;
  }
  if (hasOwn(value, "$")) return untag(value);
  const names = keys(value);
  const out = {};
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    put(out, name[0] === "$" ? stringSlice(name, 1) : name, decode(value[name]));
  }
  return out;
}

function put(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

function untag(tagged) {
  const content = tagged.v;
  switch (tagged.$) {
    case "undefined":
      return undefined;
    case "number":
      return content === "-0" ? -0 : Number_(content);
    case "bigint":
      return BigInt_(content);
    case "date":
      return new Date_(content);
    case "bytes":
      return fromBase64(content);
    case "map":
      return construct(Map_, [decode(content)]);
    case "set":
      return construct(Set_, [decode(content)]);
    case "error":
      return reviveError(content);
    default:
      throw new TypeError_(`unknown tag ${tagged.$}`);
  }
}

function reviveError(content) {
  const error = new Error_(content.message);
  put(error, "name", content.name);
  if (hasOwn(content, "cause")) put(error, "cause", decode(content.cause));
  if (hasOwn(content, "data")) {
    const data = decode(content.data);
    const names = keys(data);
    for (let index = 0; index < names.length; index++) put(error, names[index], data[names[index]]);
  }
  return error;
}
