// Stacks that show only the program's own lines, under a fixed name.

import { inProgram, install, isAsync, isToplevel, ownColumn, PROGRAM, withFewFrames } from "./frames.js";
import { captureStackTrace, create, defineProperty, Error_, errorToString } from "./primordials.js";

function nameOf(site) {
  const name = site.getFunctionName();
  return name === "default" ? null : name;
}

function textOf(site) {
  const line = site.getLineNumber();
  const place = `${PROGRAM}:${line}:${ownColumn(line, site.getColumnNumber())}`;
  const name = nameOf(site);
  return `${isAsync(site) ? "async " : ""}${name ? `${name} (${place})` : place}`;
}

// The call sites for the program's own Error.prepareStackTrace: the engine's would reveal the prelude.
function siteFor(site) {
  const line = site.getLineNumber();
  const column = ownColumn(line, site.getColumnNumber());
  const name = nameOf(site);
  const text = textOf(site);
  const awaited = isAsync(site);
  const constructed = site.isConstructor();
  const outermost = isToplevel(site);
  return {
    __proto__: null,
    getFileName: () => PROGRAM,
    getScriptNameOrSourceURL: () => PROGRAM,
    getLineNumber: () => line,
    getColumnNumber: () => column,
    getFunctionName: () => name,
    getMethodName: () => null,
    getTypeName: () => null,
    getThis: () => undefined,
    getFunction: () => undefined,
    getEvalOrigin: () => undefined,
    isAsync: () => awaited,
    isConstructor: () => constructed,
    isToplevel: () => outermost,
    isEval: () => false,
    isNative: () => false,
    toString: () => text,
  };
}

let theirs; // the program's own function, for stacks that it reads itself
let reading = false; // true while the prelude reads a stack, which must not run code of the program

function prepareStackTrace(error, sites) {
  if (!reading && typeof theirs === "function" && theirs !== prepareStackTrace) return theirs(error, sitesFor(sites));
  let out;
  try {
    out = errorToString(error);
  } catch {
    out = "Error";
  }
  for (let index = 0; index < sites.length; index++) {
    if (inProgram(sites[index])) out += `\n    at ${textOf(sites[index])}`;
  }
  return out;
}

function sitesFor(sites) {
  const out = [];
  for (let index = 0; index < sites.length; index++) {
    if (inProgram(sites[index])) put(out, out.length, siteFor(sites[index]));
  }
  return out;
}

function put(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}

/** Returns the stack of a recorded call site in our format. */
export function stackOf(site) {
  reading = true;
  try {
    return site.stack;
  } finally {
    reading = false;
  }
}

/** Records where the program is now, for an error that is created later. */
export function callSite(below) {
  const site = create(null);
  reading = true;
  try {
    withFewFrames(() => captureStackTrace(site, below)); // done at every call: twenty frames would cost 15 µs
  } finally {
    reading = false;
  }
  return site;
}

export function installStacks() {
  Error_.stackTraceLimit = 20;
  install(prepareStackTrace, (value) => {
    theirs = value;
  });
}
