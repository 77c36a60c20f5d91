// Values in readable form, and the console that shows them. Nothing of the program runs: accessors are named, not asked.

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
const SPECIFIER = /^%([sdifoOcj%])/;

const { stringify } = JSON;
const { parseInt: toInt, parseFloat: toFloat } = Number;
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
const repeat = uncurry(String.prototype.repeat);

function quoted(text) {
  const cut = text.length > MAX_TEXT
    ? `${stringSlice(text, 0, MAX_TEXT)}... ${text.length - MAX_TEXT} more characters`
    : text;
  if (!stringIncludes(cut, '"')) return stringify(cut);
  const inner = stringReplaceAll(stringSlice(stringify(cut), 1, -1), '\\"', '"');
  return stringIncludes(cut, "'") ? stringify(cut) : `'${inner}'`;
}

function own(value, name) {
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

function primitive(value) {
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
  const kind = own(getPrototypeOf(value) ?? value, Symbol.toStringTag) ?? "Function";
  return said === null ? `[${kind} (anonymous)]` : `[${kind}: ${said}]`;
}

/** A walk over one value: where it is, and what it has come through. */
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
  const [head, bare] = opening(value, name, walk, parts);
  fields(value, walk, parts, false);
  if (bare && parts.count === 0) return head;
  return joined(head === "" ? "" : `${head} `, "{", "}", parts);
}

function viewed(value, walk, parts) {
  const tag = typedArrayTag(value);
  if (tag === undefined) return `DataView { byteLength: ${dataViewByteLength(value)} }`;
  items(value, typedArrayLength(value), walk, parts);
  return joined(`${tag}(${typedArrayLength(value)}) `, "[", "]", parts);
}

/** What stands before the fields of an object, and whether that alone says it. */
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
  for (const [name, read] of [["Number", numberValue], ["String", stringValue], ["Boolean", booleanValue]]) {
    try {
      return `[${name}: ${primitive(read(value))}]`;
    } catch {
      continue; // it is none of these
    }
  }
  return null;
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

/** A value as text that a person can read. */
export function show(value) {
  return write(value, new Walk());
}

function formatted(args) {
  let out = "";
  let next = 0;
  if (typeof args[0] === "string") {
    const pattern = args[next++];
    for (let at = 0; at < pattern.length; at++) {
      const found = pattern[at] === "%" ? regexpExec(SPECIFIER, stringSlice(pattern, at, at + 2)) : null;
      if (found === null || (found[1] !== "%" && next >= args.length)) out += pattern[at];
      else {
        out += found[1] === "%" ? (args.length > 1 ? "%" : "%%") : specified(found[1], args[next++]);
        at++;
      }
    }
  }
  for (let index = next; index < args.length; index++) {
    out += (index ? " " : "") + (typeof args[index] === "string" ? args[index] : show(args[index]));
  }
  return out;
}

function specified(kind, value) {
  switch (kind) {
    case "s":
      return typeof value === "string" ? value : show(value);
    case "d":
    case "i":
      return typeof value === "bigint" ? primitive(value) : `${typeof value === "object" ? NaN : toInt(value)}`;
    case "f":
      return `${toFloat(value)}`;
    case "j":
      return `${stringify(value)}`;
    case "c":
      return "";
    default:
      return show(value);
  }
}

function table(rows) {
  const records = create(null);
  const columns = create(null);
  columns[0] = "(idx)";
  let width = 1;
  let count = 0;
  for (const name of ownKeys(rows)) {
    if (name === "length" && isArray(rows)) continue;
    const row = own(rows, name);
    const cells = create(null);
    cells["(idx)"] = String_(name);
    const compoundRow = typeof row === "object" && row !== null;
    for (const column of compoundRow ? ownKeys(row) : ["Values"]) {
      if (isArray(row) && column === "length") continue;
      const label = String_(column);
      let known = false;
      for (let index = 0; index < width; index++) known ||= columns[index] === label;
      if (!known) columns[width++] = label;
      cells[label] = show(compoundRow ? own(row, column) : row);
    }
    records[count++] = cells;
  }
  return grid(records, count, columns, width);
}

function grid(records, count, columns, width) {
  const widths = create(null);
  for (let column = 0; column < width; column++) {
    widths[column] = columns[column].length;
    for (let row = 0; row < count; row++) {
      const size = (records[row][columns[column]] ?? "").length;
      if (size > widths[column]) widths[column] = size;
    }
  }
  const rule = (left, middle, right) => {
    let out = left;
    for (let column = 0; column < width; column++) out += (column ? middle : "") + repeat("─", widths[column] + 2);
    return out + right;
  };
  const line = (cellOf) => {
    let out = "│";
    for (let column = 0; column < width; column++) {
      const cell = cellOf(columns[column]) ?? "";
      out += ` ${cell}${repeat(" ", widths[column] - cell.length)} │`;
    }
    return out;
  };
  let out = `${rule("┌", "┬", "┐")}\n${line((name) => name)}\n${rule("├", "┼", "┤")}`;
  for (let row = 0; row < count; row++) out += `\n${line((name) => records[row][name])}`;
  return `${out}\n${rule("└", "┴", "┘")}`;
}

/** A console that gives its lines to `print(text, level)`; levels are 0 debug, 1 log, 2 warn, 3 error. */
export class Console {
  constructor(print) {
    let indent = "";
    const counts = create(null);
    const say = (level, text) =>
      print(indent === "" ? text : indent + stringReplaceAll(text, "\n", `\n${indent}`), level);
    const group = (...args) => {
      if (args.length) say(1, formatted(args));
      indent += "  ";
    };
    const methods = {
      debug: (...args) => say(0, formatted(args)),
      log: (...args) => say(1, formatted(args)),
      info: (...args) => say(1, formatted(args)),
      warn: (...args) => say(2, formatted(args)),
      error: (...args) => say(3, formatted(args)),
      dir: (value) => say(1, show(value)),
      dirxml: (...args) => say(1, formatted(args)),
      table: (rows) => say(1, typeof rows === "object" && rows !== null ? table(rows) : show(rows)),
      trace: (...args) => say(3, `Trace${args.length ? `: ${formatted(args)}` : ""}`),
      assert: (holds, ...args) => {
        if (!holds) say(3, `Assertion failed${args.length ? `: ${formatted(args)}` : ""}`);
      },
      count: (label = "default") => say(1, `${label}: ${counts[label] = (counts[label] ?? 0) + 1}`),
      countReset: (label = "default") => void delete counts[label],
      group,
      groupCollapsed: group,
      groupEnd: () => void (indent = stringSlice(indent, 2)),
      clear: () => void (indent = ""),
    };
    for (const name of ownKeys(methods)) this[name] = methods[name];
  }
}
