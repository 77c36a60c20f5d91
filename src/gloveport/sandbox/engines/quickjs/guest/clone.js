// structuredClone for plain data, Date, RegExp, Map, Set, errors and bytes, including shared and circular parts.

import { lacks } from "./unsupported.js";
import {
  ArrayBuffer_,
  construct,
  Date_,
  dateGetTime,
  defineProperty,
  Error_,
  getPrototypeOf,
  getter,
  isArray,
  isView,
  keys,
  Map_,
  mapForEach,
  mapGet,
  mapSet,
  ObjectPrototype,
  RegExp_,
  Set_,
  setAdd,
  setForEach,
  sliceBuffer,
  typedArrayTag,
} from "./primordials.js";

const { DOMException } = globalThis;
const sourceOf = getter(RegExp.prototype, "source");
const flagsOf = getter(RegExp.prototype, "flags");
const Promise_ = Promise;
const WeakMap_ = WeakMap;
const WeakSet_ = WeakSet;
const ERRORS = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const ARRAYS = { __proto__: null };
for (
  const kind of [
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    BigInt64Array,
    BigUint64Array,
    Float16Array,
    Float32Array,
    Float64Array,
  ]
) {
  ARRAYS[kind.name] = kind;
}
const DataView_ = DataView;

function refuse(what) {
  throw new DOMException(`${what} could not be cloned.`, "DataCloneError");
}

function copy(value, seen) {
  if (typeof value === "function") refuse("A function");
  if (typeof value === "symbol") refuse("A symbol");
  if (typeof value !== "object" || value === null) return value;
  const before = mapGet(seen, value);
  if (before !== undefined) return before;
  const made = isArray(value) ? [] : special(value, seen) ?? {};
  mapSet(seen, value, made);
  if (made instanceof Map_) mapForEach(value, (item, key) => mapSet(made, copy(key, seen), copy(item, seen)));
  else if (made instanceof Set_) setForEach(value, (item) => setAdd(made, copy(item, seen)));
  else if (made instanceof Error_) copyError(value, made, seen);
  else if (isArray(made) || getPrototypeOf(made) === ObjectPrototype) copyOwn(value, made, seen);
  return made;
}

function special(value, seen) {
  if (value instanceof Date_) return new Date_(dateGetTime(value));
  if (value instanceof RegExp_) return new RegExp_(sourceOf(value), flagsOf(value));
  if (value instanceof Map_) return new Map_();
  if (value instanceof Set_) return new Set_();
  if (value instanceof ArrayBuffer_) return sliceBuffer(value, 0);
  if (isView(value)) {
    const kind = ARRAYS[typedArrayTag(value)] ?? DataView_;
    return new kind(copy(value.buffer, seen), value.byteOffset, kind === DataView_ ? value.byteLength : value.length);
  }
  if (value instanceof Error_) return construct(ERRORS[value.name] ?? Error_, [`${value.message}`]);
  if (value instanceof Promise_ || value instanceof WeakMap_ || value instanceof WeakSet_) refuse("This object");
  return undefined;
}

function copyError(value, made, seen) {
  put(made, "stack", value.stack);
  if ("cause" in value) put(made, "cause", copy(value.cause, seen));
}

function copyOwn(value, made, seen) {
  const names = keys(value);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    defineProperty(made, name, {
      __proto__: null,
      value: copy(value[name], seen),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  if (isArray(made)) made.length = value.length;
}

function put(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/** Returns a deep copy of a value. */
export function cloneValue(value, options) {
  if (options?.transfer?.length) lacks("structuredClone with `transfer`");
  return copy(value, new Map_());
}
