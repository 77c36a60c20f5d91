// Format values for people. No code of the program runs: accessors are named, not called.

import {
  bigintToString,
  create,
  dataViewByteLength,
  Date_,
  dateGetTime,
  Error_,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  isArray,
  isView,
  Map_,
  mapForEach,
  ObjectPrototype,
  ownKeys,
  RegExp_,
  regexpExec,
  Set_,
  setForEach,
  String_,
  stringIncludes,
  stringReplaceAll,
  stringSlice,
  toStringTag,
  typedArrayLength,
  typedArrayTag,
  uncurry,
} from "./primordials.js";

const MAX_DEPTH = 4;
const MAX_ITEMS = 100;
const MAX_LINE = 72;
const MAX_TEXT = 10_000;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const INTEGER = /^\d+$/;

const { stringify } = JSON;
const Promise_ = Promise;
const WeakMap_ = WeakMap;
const WeakSet_ = WeakSet;
const toIsoString = uncurry(Date.prototype.toISOString);
const mapSize = uncurry(getOwnPropertyDescriptor(Map.prototype, "size").get);
const setSize = uncurry(getOwnPropertyDescriptor(Set.prototype, "size").get);
const regexpText = uncurry(RegExp.prototype.toString);
const symbolText = uncurry(Symbol.prototype.toString);
const functionText = uncurry(Function.prototype.toString);
const booleanValue = uncurry(Boolean.prototype.valueOf);
const numberValue = uncurry(Number.prototype.valueOf);
const stringValue = uncurry(String.prototype.valueOf);
const indexOfLine = uncurry(String.prototype.indexOf);

function quoted(text) {
  const cut = text.length > MAX_TEXT
    ? `${stringSlice(text, 0, MAX_TEXT)}... ${text.length - MAX_TEXT} more characters`
    : text;
  if (!stringIncludes(cut, '"')) return stringify(cut);
  const inner = stringReplaceAll(stringSlice(stringify(cut), 1, -1), '\\"', '"');
  return stringIncludes(cut, "'") ? stringify(cut) : `'${inner}'`;
}

/** Returns a member that is a value, without calling accessors. */
export function own(value, name) {
  const found = getOwnPropertyDescriptor(value, name);
  return found === undefined ? undefined : found.value;
}

function className(value) {
  for (let from = getPrototypeOf(value); from !== null; from = getPrototypeOf(from)) {
    const made = own(from, "constructor");
    if (typeof made === "function") {
      const name = own(made, "name");
      return typeof name === "string" ? name : "";
    }
  }
  return null;
}

/** Returns a primitive value as text. */
export function primitive(value) {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      return value === 0 && 1 / value < 0 ? "-0" : `${value}`;
    case "bigint":
      return `${bigintToString(value)}n`;
    case "symbol":
      return symbolText(value);
    default:
      return `${value}`;
  }
}

function functionHead(value) {
  const name = own(value, "name");
  const said = typeof name === "string" && name !== "" ? name : null;
  if (stringSlice(functionText(value), 0, 5) === "class") return `[class ${said ?? "(anonymous)"}]`;
  const kind = own(getPrototypeOf(value) ?? value, toStringTag) ?? "Function";
  return said === null ? `[${kind} (anonymous)]` : `[${kind}: ${said}]`;
}

/** The state of formatting one value: the depth, and the objects around it. */
class Walk {
  depth = 0;
  path = create(null);
}

function within(walk, value) {
  for (let index = 0; index < walk.depth; index++) if (walk.path[index] === value) return true;
  return false;
}

function write(value, walk) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return primitive(value);
  if (within(walk, value)) return "[Circular *1]";
  if (walk.depth > MAX_DEPTH) return isArray(value) ? "[Array]" : `[${className(value) ?? "Object: null prototype"}]`;
  walk.path[walk.depth++] = value;
  try {
    return compound(value, walk);
  } finally {
    walk.depth--;
  }
}

function compound(value, walk) {
  const parts = create(null);
  parts.count = 0;
  const name = className(value);
  if (isArray(value)) {
    items(value, value.length, walk, parts);
    fields(value, walk, parts, true);
    return joined(name === "Array" ? "" : `${name}(${value.length}) `, "[", "]", parts);
  }
  if (isView(value)) return viewed(value, walk, parts);
  const opened = opening(value, name, walk, parts);
  const head = opened[0];
  fields(value, walk, parts, false);
  if (opened[1] && parts.count === 0) return head;
  return joined(head === "" ? "" : `${head} `, "{", "}", parts);
}

function viewed(value, walk, parts) {
  const tag = typedArrayTag(value);
  if (tag === undefined) return `DataView { byteLength: ${dataViewByteLength(value)} }`;
  items(value, typedArrayLength(value), walk, parts);
  return joined(`${tag}(${typedArrayLength(value)}) `, "[", "]", parts);
}

/** Returns the prefix of an object, and whether the prefix alone describes it. */
function opening(value, name, walk, parts) {
  if (typeof value === "function") return [functionHead(value), true];
  if (value instanceof Error_) return [errorText(value), true];
  if (value instanceof Date_) {
    const time = dateGetTime(value);
    return [time === time ? toIsoString(value) : "Invalid Date", true];
  }
  if (value instanceof RegExp_) return [regexpText(value), true];
  if (value instanceof Map_) {
    mapForEach(value, (item, key) => add(parts, `${write(key, walk)} => ${write(item, walk)}`));
    return [`Map(${mapSize(value)})`, false];
  }
  if (value instanceof Set_) {
    setForEach(value, (item) => add(parts, write(item, walk)));
    return [`Set(${setSize(value)})`, false];
  }
  if (value instanceof Promise_) return ["Promise { <unknown> }", true];
  if (value instanceof WeakMap_ || value instanceof WeakSet_) return [`${name} { <items unknown> }`, true];
  const box = boxed(value);
  if (box !== null) return [box, true];
  if (name === null) return ["[Object: null prototype]", false];
  return [getPrototypeOf(value) === ObjectPrototype ? "" : name, false];
}

function boxed(value) {
  return unboxed("Number", numberValue, value) ?? unboxed("String", stringValue, value) ??
    unboxed("Boolean", booleanValue, value);
}

function unboxed(name, read, value) {
  try {
    return `[${name}: ${primitive(read(value))}]`;
  } catch {
    return null; // none of these kinds
  }
}

function errorText(value) {
  const stack = own(value, "stack");
  const text = typeof stack === "string" ? stack : `${className(value)}: ${String_(own(value, "message"))}`;
  const cause = own(value, "cause");
  return cause === undefined ? text : `${text}\nCaused by: ${show(cause)}`;
}

function add(parts, text) {
  if (parts.count < MAX_ITEMS) parts[parts.count] = text;
  parts.count++;
}

function items(value, length, walk, parts) {
  for (let index = 0; index < length; index++) {
    if (index >= MAX_ITEMS) {
      parts.count = length;
      return;
    }
    const found = getOwnPropertyDescriptor(value, index);
    add(parts, found === undefined ? "<empty>" : member(found, walk));
  }
}

function fields(value, walk, parts, skipItems) {
  const names = ownKeys(value);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    const found = getOwnPropertyDescriptor(value, name);
    if (found === undefined || !found.enumerable || (value instanceof Error_ && name === "cause")) continue;
    if (skipItems && typeof name === "string" && regexpExec(INTEGER, name)) continue;
    const label = typeof name === "symbol" ? symbolText(name) : regexpExec(IDENTIFIER, name) ? name : quoted(name);
    add(parts, `${label}: ${member(found, walk)}`);
  }
}

function member(found, walk) {
  if (found.get !== undefined) return found.set !== undefined ? "[Getter/Setter]" : "[Getter]";
  return found.set !== undefined ? "[Setter]" : write(found.value, walk);
}

function joined(head, open, close, parts) {
  if (parts.count === 0) return `${head}${open}${close}`;
  const shown = parts.count < MAX_ITEMS ? parts.count : MAX_ITEMS;
  let flat = "";
  for (let index = 0; index < shown; index++) flat += (index ? ", " : "") + parts[index];
  if (parts.count > shown) flat += `, ... ${parts.count - shown} more items`;
  if (flat.length <= MAX_LINE && indexOfLine(flat, "\n") < 0) return `${head}${open} ${flat} ${close}`;
  let lines = "";
  for (let index = 0; index < shown; index++) {
    lines += `${index ? ",\n" : ""}  ${stringReplaceAll(parts[index], "\n", "\n  ")}`;
  }
  if (parts.count > shown) lines += `,\n  ... ${parts.count - shown} more items`;
  return `${head}${open}\n${lines}\n${close}`;
}

/** Returns a value as readable text. */
export function show(value) {
  return write(value, new Walk());
}
