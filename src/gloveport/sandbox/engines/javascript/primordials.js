// The built-ins that the prelude uses, captured before any guest code runs. Guest code may replace every built-in, so the
// prelude never looks one up again. Its own containers have no prototype, so that planted accessors are never called.

const { bind, call } = Function.prototype;

/** Turns a method into a function that takes its receiver as the first argument. */
export const uncurry = bind.bind(call);

export const { apply, construct, defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } =
  Reflect;
export const { create, freeze, hasOwn, keys, setPrototypeOf } = Object;
export const getter = (object, name) => uncurry(getOwnPropertyDescriptor(object, name).get);

export const ArrayBuffer_ = ArrayBuffer;
export const BigInt_ = BigInt;
export const Date_ = Date;
export const Error_ = Error;
export const EvalError_ = EvalError;
export const Map_ = Map;
export const Number_ = Number;
export const ArrayPrototype = Array.prototype;
export const ObjectPrototype = Object.prototype;
export const Promise_ = Promise;
export const Proxy_ = Proxy;
export const RangeError_ = RangeError;
export const RegExp_ = RegExp;
export const Set_ = Set;
export const String_ = String;
export const SyntaxError_ = SyntaxError;
export const TypeError_ = TypeError;
export const Uint8Array_ = Uint8Array;
export const Uint32Array_ = Uint32Array;

export const { isArray } = Array;
export const { parse: parseJson } = JSON;
export const { stringify } = JSON;
export const { isSafeInteger, isInteger, isFinite: isFiniteNumber } = Number;
export const { floor, max, min } = Math;
export const { isView } = ArrayBuffer;
export const { captureStackTrace } = Error;
export const { iterator, toPrimitive, toStringTag } = Symbol;
export const fromCharCode = String.fromCharCode;

export const dateGetTime = uncurry(Date.prototype.getTime);
export const dateToString = uncurry(Date.prototype.toString);
export const mapDelete = uncurry(Map.prototype.delete);
export const mapForEach = uncurry(Map.prototype.forEach);
export const mapGet = uncurry(Map.prototype.get);
export const mapSize = getter(Map.prototype, "size");
export const mapSet = uncurry(Map.prototype.set);
export const setAdd = uncurry(Set.prototype.add);
export const setForEach = uncurry(Set.prototype.forEach);
export const promiseThen = uncurry(Promise.prototype.then);
export const promiseReject = Promise.reject.bind(Promise);
export const promiseResolve = Promise.resolve.bind(Promise);
export const codePointAt = uncurry(String.prototype.codePointAt);
export const stringSlice = uncurry(String.prototype.slice);
export const stringStartsWith = uncurry(String.prototype.startsWith);
export const stringIncludes = uncurry(String.prototype.includes);
export const stringIndexOf = uncurry(String.prototype.indexOf);
export const stringLastIndexOf = uncurry(String.prototype.lastIndexOf);
const isWellFormed = uncurry(String.prototype.isWellFormed);
const toWellFormed = uncurry(String.prototype.toWellFormed);
export const stringReplaceAll = uncurry(String.prototype.replaceAll);
export const regexpExec = uncurry(RegExp.prototype.exec);
export const errorToString = uncurry(Error.prototype.toString);
export const numberToString = uncurry(Number.prototype.toString);
export const bigintToString = uncurry(BigInt.prototype.toString);

export const sliceBuffer = uncurry(ArrayBuffer.prototype.slice);
const TypedArray = getPrototypeOf(Uint8Array);
export const setBytes = uncurry(TypedArray.prototype.set);
export const copyWithin = uncurry(TypedArray.prototype.copyWithin);
export const typedArrayLength = getter(TypedArray.prototype, "length");
export const typedArrayBuffer = getter(TypedArray.prototype, "buffer");
export const typedArrayByteOffset = getter(TypedArray.prototype, "byteOffset");
export const typedArrayByteLength = getter(TypedArray.prototype, "byteLength");
export const typedArrayTag = getter(TypedArray.prototype, toStringTag);
export const dataViewBuffer = getter(DataView.prototype, "buffer");
export const dataViewByteOffset = getter(DataView.prototype, "byteOffset");
export const dataViewByteLength = getter(DataView.prototype, "byteLength");
export const toBase64 = uncurry(Uint8Array.prototype.toBase64);
export const fromBase64 = Uint8Array.fromBase64.bind(Uint8Array);

/** Returns the bytes from `start` to `end`. Not subarray(), which reads the guest's `constructor[Symbol.species]`. */
export function view(buffer, start, end) {
  return new Uint8Array_(buffer, start, end - start);
}

/** Returns a string as JSON. UTF-8 can't encode a lone surrogate; it becomes U+FFFD, as elsewhere on the platform. */
export function quote(text) {
  return stringify(isWellFormed(text) ? text : toWellFormed(text));
}
