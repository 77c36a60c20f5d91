// `tools.<source>.<path…>(args)`: a path is collected by property reads and sent when it is called. Nothing here knows which
// tools there are; the host looks every name up.

import { callSite, ToolError } from "./errors.js";
import {
  create,
  defineProperty,
  isArray,
  Promise_,
  Proxy_,
  stringifyJson,
  toPrimitive,
  toStringTag,
} from "./primordials.js";
import { encode } from "./values.js";
import { flush, replyTo, send } from "./wire.js";

const pending = create(null); // id → {resolve, reject, site, name}
let pendingCount = 0;
let nextId = 1;

function encodeArguments(args) {
  let out = "[";
  for (let index = 0; index < args.length; index++) {
    out += (index ? "," : "") + encode(args[index], args.length === 1 ? "argument" : `argument ${index + 1}`);
  }
  return out + "]";
}

function callTool(name, args) {
  const id = nextId++;
  const site = callSite(callTool);
  return new Promise_((resolve, reject) => {
    try {
      send(`["call",${id},${stringifyJson(name)},${encodeArguments(args)}]`);
    } catch (error) {
      reject(new ToolError(`tools.${name}: ${error.message}`, { code: "bad-value", tool: name }, site));
      return;
    }
    pending[id] = { __proto__: null, resolve, reject, site, name };
    pendingCount++;
  });
}

/** The answer of the host, at once: the whole guest waits. */
export function callSync(name, args) {
  const id = nextId++;
  send(`["call_sync",${id},${stringifyJson(name)},${encodeArguments(args)}]`);
  flush();
  const reply = replyTo(id);
  onTime(reply[1]);
  if (reply[3]) return reply[4];
  throw new ToolError(reply[4].message, reply[4], callSite(callSync));
}

let onTime = () => {};

/** Tells tools.js how to move the clock when a synchronous answer arrives. */
export function setClock(advance) {
  onTime = advance;
}

/** Settles the call that a reply frame answers. */
export function settleCall(reply) {
  const id = reply[2];
  const call = pending[id];
  if (call === undefined) return;
  delete pending[id];
  pendingCount--;
  if (reply[3]) call.resolve(reply[4]);
  else call.reject(new ToolError(reply[4].message, reply[4], call.site));
}

export function callsPending() {
  return pendingCount;
}

/** The ids of the calls that have no reply yet, as JSON text. */
export function pendingIds() {
  let out = "";
  for (const id in pending) out += (out ? "," : "") + id;
  return `[${out}]`;
}

// Names that the language itself asks functions and objects for; a tool can't have them.
const NOT_TOOLS = create(null);
for (
  const name of [
    "then",
    "toJSON",
    "constructor",
    "prototype",
    "__proto__",
    "caller",
    "arguments",
    "inspect",
    "$$typeof",
  ]
) {
  NOT_TOOLS[name] = true;
}

function node(path) {
  const children = create(null);
  const label = path ? `tools.${path}` : "tools";
  const target = () => {};
  const textOf = () => `[${label}]`;
  return new Proxy_(target, {
    __proto__: null,
    get(_target, name) {
      if (typeof name === "symbol") return name === toStringTag ? label : name === toPrimitive ? textOf : undefined;
      if (NOT_TOOLS[name]) return undefined;
      if (name === "toString" || name === "valueOf") return textOf;
      return children[name] ??= node(path ? `${path}.${name}` : name);
    },
    apply(_target, _self, args) {
      if (!path) {
        throw new ToolError("`tools` is not a function: call tools.<source>.<name>(…)", { code: "unknown-tool" });
      }
      return callTool(path, args);
    },
    has(_target, name) {
      return typeof name === "string" && includes(callSync("names", [path]), name);
    },
    ownKeys() {
      return callSync("names", [path]);
    },
    getOwnPropertyDescriptor(_target, name) {
      if (typeof name === "symbol" || !includes(callSync("names", [path]), name)) return undefined;
      return {
        value: children[name] ??= node(path ? `${path}.${name}` : name),
        enumerable: true,
        configurable: true,
        writable: false,
      };
    },
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
    getPrototypeOf: () => null,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  });
}

function includes(names, name) {
  if (!isArray(names)) return false;
  for (let index = 0; index < names.length; index++) if (names[index] === name) return true;
  return false;
}

/** Defines `tools`, `codemode`, each source under its own name where that shadows nothing, and the interface look-ups. */
export function installTools(sources) {
  const tools = node("");
  const define = (name, value) =>
    defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  define("tools", tools);
  define("codemode", tools);
  for (let index = 0; index < sources.length; index++) {
    if (!(sources[index] in globalThis)) define(sources[index], tools[sources[index]]);
  }
  define("__getToolInterface", (name) => callSync("interface", [name]));
  defineProperty(globalThis, "__interfaces", {
    __proto__: null,
    get: () => callSync("interfaces", []),
    enumerable: false,
    configurable: true,
  });
  return tools;
}
