// QuickJS has no modules of its own. The script with the modules that the host sends is compiled like a program.

import { compile, Unreadable } from "./engine.js";
import { Error_, promiseReject, promiseThen } from "./primordials.js";

const NAME = "gloveport:modules";

/** Returns a promise for the namespace of a built-in module. */
export function loadBuiltIn(name) {
  return promiseReject(new Error_(`there is no module ${name}`));
}

/** Returns a promise for the function that runs a script of CommonJS, without running it. */
export function loadScript(script) {
  const fault = compile(`export default function (require, module, exports) {${script}\n}`, NAME);
  if (fault !== "") return promiseReject(new Unreadable(fault));
  return promiseThen(import(NAME), (found) => found.default);
}
