// Load a program in QuickJS: compile it as a module, then import that.

import { compile, Unreadable } from "./engine.js";
import { place } from "./errors.js";
import { ownColumn, PROGRAM, setProgram } from "./frames.js";
import { Promise_, quote, stringIndexOf, stringSlice } from "./primordials.js";

const PLACE = /program\.ts:(\d+):(\d+)/;

/** Returns a promise for the module of a program. `started` is called before its first statement. */
export function load(setup, started, name = PROGRAM) {
  setProgram(setup.code);
  const fault = compile(setup.code, name);
  if (fault !== "") return new Promise_((_resolve, reject) => reject(new Unreadable(fault)));
  started();
  return import(name);
}

/** Returns JSON text for a program that QuickJS could not parse: a syntax error with its place. */
export function describeLoad(thrown) {
  const said = thrown.message;
  const colon = stringIndexOf(said, ": ");
  const end = stringIndexOf(said, "\n");
  const message = stringSlice(said, colon + 2, end < 0 ? said.length : end);
  return `{"type":"SyntaxError","load":true,"message":${quote(message)}${place(said, PLACE, ownColumn)}}`;
}
