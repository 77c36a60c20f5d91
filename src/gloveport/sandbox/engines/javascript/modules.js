// The modules of a run: Node's built-in modules that the engine has, and the packages and project files that the host
// sends as one script. `prepare` has replaced the imports of the program by calls of the functions that are defined here.

import { loadBuiltIn, loadScript } from "./builtins.js";
import { define } from "./globals.js";
import {
  apply,
  create,
  Error_,
  freeze,
  keys,
  Promise_,
  promiseResolve,
  promiseThen,
  stringSlice,
  stringStartsWith,
  SyntaxError_,
} from "./primordials.js";
import { timerGlobals } from "./timers.js";

const MAX_SHOWN = 20;
const makers = create(null); // of built-in modules that the prelude itself has

/** Defines a built-in module: `make` returns its exports, once a program imports it. */
export function defineModule(name, make) {
  makers[name] = make;
}

defineModule("perf_hooks", () => ({ performance: globalThis.performance }));
defineModule("process", () => globalThis.process);
defineModule("timers", () => ({ ...timerGlobals }));
defineModule("timers/promises", () => ({
  setTimeout: (delay, value) => new Promise_((resolve) => timerGlobals.setTimeout(resolve, delay, value)),
  setImmediate: (value) => new Promise_((resolve) => timerGlobals.setTimeout(resolve, 0, value)),
}));

function namespaceOf(exports) {
  return freeze({ __proto__: null, ...exports, default: exports });
}

const known = create(null); // namespaces of built-in modules, by name
let factory = null; // of the script that the host sent
let sent = null; // what it has exported

function builtIn(name) {
  const plain = stringStartsWith(name, "node:") ? stringSlice(name, 5) : name;
  const found = known[plain];
  if (found !== undefined) return found;
  const error = new Error_(`Cannot find module '${name}': programs have no such module`);
  error.code = "MODULE_NOT_FOUND";
  throw error;
}

// What `require` gives: Node's modules export one object, which is their default.
function requireBuiltIn(name) {
  const found = builtIn(name);
  return found.default ?? found;
}

// The script runs when the first of its modules is asked for, as a part of the program.
function sentModules() {
  if (sent === null) {
    const module = { exports: {} };
    sent = module.exports;
    apply(factory, undefined, [requireBuiltIn, module, module.exports]);
    sent = module.exports;
  }
  return sent;
}

function namespace(name) {
  return known[name] ?? sentModules()[`import ${name}`];
}

function check(found, name, wanted) {
  for (let index = 0; index < wanted.length; index++) {
    if (wanted[index] in found) continue;
    let others = "";
    const names = keys(found);
    for (let at = 0; at < names.length && at < MAX_SHOWN; at++) others += `${at ? ", " : ""}${names[at]}`;
    if (wanted[index] === "default") {
      throw new SyntaxError_(`the module \`${name}\` has no default export: write \`import * as name from "${name}"\``);
    }
    throw new SyntaxError_(`the module \`${name}\` has no export \`${wanted[index]}\`; it has: ${others}`);
  }
  return found;
}

function installLookUps() {
  define("$$module", (name, ...wanted) => check(namespace(name), name, wanted));
  define("$$require", (name) => known[name] === undefined ? sentModules()[`require ${name}`]() : requireBuiltIn(name));
  define(
    "$$import",
    (name) => new Promise_((resolve) => resolve(known[name] ?? sentModules()[`dynamic ${name}`]())),
  );
}

/** Runs the script that the host has sent. */
export function runScript() {
  sentModules();
}

/** Returns a promise that resolves when the modules of a start event are there. */
export function installModules(modules) {
  const { builtins, script } = modules;
  let loading = promiseResolve();
  for (let index = 0; index < builtins.length; index++) {
    const name = builtins[index];
    loading = promiseThen(loading, () => makers[name] === undefined ? loadBuiltIn(name) : namespaceOf(makers[name]()));
    loading = promiseThen(loading, (found) => {
      known[name] = found;
    });
  }
  if (script !== undefined) {
    loading = promiseThen(loading, () => loadScript(script));
    loading = promiseThen(loading, (made) => {
      factory = made;
    });
  }
  return promiseThen(loading, installLookUps);
}
