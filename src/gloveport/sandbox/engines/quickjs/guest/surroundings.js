// The parts of QuickJS's platform that a guest keeps, those that are removed, and those that are added here.

import { installClock } from "./clock.js";
import { cloneValue } from "./clone.js";
import { compareTexts } from "./collation.js";
import { TextDecoder, TextEncoder } from "./encoding.js";
import { dateText, timeText } from "./engine.js";
import { installGlobals } from "./globals.js";
import { lacks } from "./unsupported.js";
import { makeOutput } from "./output.js";
import {
  Date_,
  defineProperty,
  deleteProperty,
  EvalError_,
  getPrototypeOf,
  hasOwn,
  setPrototypeOf,
  TypeError_,
} from "./primordials.js";
import { installRandom } from "./random.js";
import { fail } from "./run.js";
import { installStacks } from "./stacks.js";
import { timerGlobals } from "./timers.js";

const PLATFORM = "atob btoa DOMException";
const { queueMicrotask: queue } = globalThis;

// An error in a microtask ends the run, as on other platforms. The engine would swallow it.
function queueMicrotask(run) {
  if (typeof run !== "function") throw new TypeError_("queueMicrotask takes a function");
  queue(() => {
    try {
      run();
    } catch (error) {
      fail(error);
    }
  });
}

function put(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

// The constructors of functions are reached through their instances. The engine recognises its own `eval` by identity.
function refuseCode() {
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const made of kinds) {
    const prototype = getPrototypeOf(made);
    const { name } = prototype.constructor;
    const refuse = {
      [name]: function () {
        throw new EvalError_("Code generation from strings disallowed for this context");
      },
    }[name];
    defineProperty(refuse, "prototype", { __proto__: null, value: prototype, writable: false });
    put(prototype, "constructor", refuse);
    if (name === "Function") globalThis.Function = refuse;
  }
  put(globalThis, "eval", (code) => {
    if (typeof code !== "string") return code;
    throw new EvalError_("Code generation from strings disallowed for this context");
  });
}

// Remove this engine's own properties for where a function was defined, which would reveal the prelude, and make errors at
// its limits the same as elsewhere.
function trim() {
  const { prototype } = InternalError;
  deleteProperty(prototype, "name");
  setPrototypeOf(prototype, RangeError.prototype);
  for (const name of ["fileName", "lineNumber", "columnNumber"]) deleteProperty(Function.prototype, name);
}

function nameZone() {
  put(
    Date_.prototype,
    "toString",
    {
      toString() {
        return dateText(this);
      },
    }.toString,
  );
  put(
    Date_.prototype,
    "toTimeString",
    {
      toTimeString() {
        return timeText(this);
      },
    }.toTimeString,
  );
}

// QuickJS has no locale data: its output would differ from that of other engines.
function turnLocales() {
  const kinds = [Number, BigInt, Date];
  for (const { name, prototype } of kinds) {
    for (const method of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) {
      if (!hasOwn(prototype, method)) continue;
      put(prototype, method, () => lacks(`${name}.prototype.${method}`));
    }
  }
  put(
    String.prototype,
    "localeCompare",
    {
      localeCompare(other, locales, options) {
        return compareTexts(`${this}`, `${other}`, locales, options);
      },
    }.localeCompare,
  );
}

/** Replaces QuickJS's globals by those that a guest may have. */
export function installSurroundings(allowEval) {
  const clock = installClock();
  installStacks();
  trim();
  nameZone();
  turnLocales();
  if (!allowEval) refuseCode();
  installGlobals(PLATFORM, {
    ...clock,
    ...installRandom(),
    ...makeOutput(clock.performance.now),
    ...timerGlobals,
    queueMicrotask,
    structuredClone: cloneValue,
    TextDecoder,
    TextEncoder,
  });
}
