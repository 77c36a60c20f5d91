// The console: lines of readable values, groups, counts and tables.

import { own, primitive, show } from "./inspect.js";
import {
  create,
  isArray,
  ownKeys,
  regexpExec,
  String_,
  stringReplaceAll,
  stringSlice,
  uncurry,
} from "./primordials.js";

const SPECIFIER = /^%([sdifoOcj%])/;
const { stringify } = JSON;
const { parseInt: toInt, parseFloat: toFloat } = Number;
const repeat = uncurry(String.prototype.repeat);

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
  const names = ownKeys(rows);
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    if (name === "length" && isArray(rows)) continue;
    const row = own(rows, name);
    const cells = create(null);
    cells["(idx)"] = String_(name);
    const compoundRow = typeof row === "object" && row !== null;
    const inner = compoundRow ? ownKeys(row) : ["Values"];
    for (let next = 0; next < inner.length; next++) {
      const column = inner[next];
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

/** Returns a console that passes its lines to `print(text, level)`. Levels are 0 debug, 1 log, 2 warn, 3 error. */
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
