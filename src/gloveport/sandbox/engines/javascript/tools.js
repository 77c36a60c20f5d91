// `tools.<source>.<path…>(args)`: property reads collect a path, and calling it sends it. Nothing here knows which tools
// exist: the host looks up every name.

import { ToolError } from "./errors.js";
import { replyTo } from "./events.js";
import {
  create,
  defineProperty,
  isArray,
  Map_,
  mapDelete,
  mapForEach,
  mapGet,
  mapSet,
  mapSize,
  Promise_,
  Proxy_,
  quote,
  toPrimitive,
  toStringTag,
} from "./primordials.js";
import { callSite, stackOf } from "./stacks.js";
import { currentLabel, enterEvent } from "./steps.js";
import { BadValue, encode } from "./values.js";
import { flush, send, TooLarge } from "./wire.js";

const pending = new Map_(); // id → Pending, in the order of the calls
let nextId = 1;

function isOurs(error) {
  return error instanceof BadValue || error instanceof TooLarge;
}

function encodeArguments(args) {
  let out = "[";
  for (let index = 0; index < args.length; index++) {
    out += (index ? "," : "") + encode(args[index], args.length === 1 ? "argument" : `argument ${index + 1}`);
  }
  return out + "]";
}

// The place of a call is recorded only for the first calls: recording it costs as much as the rest of a call. A later call
// that fails gets the place that all of those shared (mostly a loop), or none.
const NOTED = 32;

function noteSite(sites) {
  if (sites.count === NOTED) return sites;
  const site = callSite(callTool);
  sites[sites.count++] = site;
  return site;
}

function placeOf(noted) {
  if (noted.count === undefined) return noted;
  const first = noted[0];
  for (let index = 1; index < NOTED; index++) if (stackOf(noted[index]) !== stackOf(first)) return undefined;
  return first;
}

// Fields are defined, not assigned, so that setters planted on prototypes are never called.
class Pending {
  resolve;
  reject;
  site;
  label;
  constructor(resolve, reject, site, label) {
    this.resolve = resolve;
    this.reject = reject;
    this.site = site;
    this.label = label;
  }
}

function callTool(name, quoted, args, sites) {
  return sendCall(name, quoted, args, noteSite(sites));
}

function sendCall(name, quoted, args, site) {
  const label = currentLabel();
  return new Promise_((resolve, reject) => {
    let id;
    try {
      const encoded = encodeArguments(args); // runs the program's getters, which may call tools themselves
      id = nextId++;
      send(`["call",${id},${quoted},${encoded}${label === undefined ? "" : `,${quote(label)}`}]`);
    } catch (error) {
      reject(
        isOurs(error)
          ? new ToolError(`tools.${name}: ${error.message}`, {
            code: error instanceof TooLarge ? "frame-too-large" : "bad-value",
            tool: name,
          }, placeOf(site))
          : error,
      );
      return;
    }
    mapSet(pending, id, new Pending(resolve, reject, site, label));
  });
}

/** Returns a promise of the result of a tool that Gloveport has itself, for the program at `site`. */
export function callBuiltIn(name, args, site) {
  return sendCall(name, quote(name), [args], site);
}

/** Returns the answer of the host. The whole guest waits for it. */
export function callSync(name, args) {
  const encoded = encodeArguments(args);
  const id = nextId++;
  send(`["call_sync",${id},${quote(name)},${encoded}]`);
  flush();
  const reply = replyTo(id);
  onTime(reply[1]);
  if (reply[3]) return reply[4];
  throw new ToolError(reply[4].message, reply[4], callSite(callSync));
}

let onTime = () => {};

/** Sets the function that moves the clock when a synchronous answer arrives. */
export function setClock(advance) {
  onTime = advance;
}

/** Settles the call that a reply frame answers. */
export function settleCall(reply) {
  const id = reply[2];
  const call = mapGet(pending, id);
  if (call === undefined) return;
  mapDelete(pending, id);
  enterEvent(call.label);
  if (reply[3]) call.resolve(reply[4]);
  else call.reject(new ToolError(reply[4].message, reply[4], placeOf(call.site)));
}

export function callsPending() {
  return mapSize(pending);
}

/** Returns the ids of the calls without a reply, as JSON text. */
export function pendingIds() {
  let out = "";
  mapForEach(pending, (_call, id) => out += (out ? "," : "") + id);
  return `[${out}]`;
}

// Names that the language itself reads from functions and objects. A tool can't have them.
const NOT_TOOLS = create(null);
for (
  const name of [
    "then",
    "toJSON",
    "constructor",
    "prototype",
    "__proto__",
    "arguments",
    "inspect",
    "$$typeof",
  ]
) {
  NOT_TOOLS[name] = true;
}

// The pages of a tool, each fetched on demand. An async generator queues its requests.
async function* pagesOf(path, base, args, sites) {
  const quoted = quote(`${base}#page`);
  const sent = [];
  for (let index = 0; index < args.length; index++) defineProperty(sent, index, plainly(args[index]));
  let cursor = null;
  do {
    defineProperty(sent, args.length, plainly(cursor));
    const page = await callTool(path, quoted, sent, sites);
    if (!page.empty) yield page.value;
    cursor = page.next;
  } while (cursor !== null);
}

function plainly(value) {
  return { __proto__: null, value, writable: true, enumerable: true, configurable: true };
}

function node(path, above = "") {
  const children = create(null);
  const mayPage = above !== "" && path === `${above}.pages`;
  let paged;
  const quoted = quote(path);
  const sites = { __proto__: null, count: 0 };
  const label = path ? `tools.${path}` : "tools";
  const target = () => {};
  const textOf = () => `[${label}]`;
  return new Proxy_(target, {
    __proto__: null,
    get(_target, name) {
      if (typeof name === "symbol") return name === toStringTag ? label : name === toPrimitive ? textOf : undefined;
      if (NOT_TOOLS[name]) return undefined;
      if (name === "toString" || name === "valueOf") return textOf;
      return children[name] ??= node(path ? `${path}.${name}` : name, path);
    },
    apply(_target, _self, args) {
      if (!path) {
        throw new ToolError("`tools` is not a function: call tools.<source>.<name>(…)", { code: "unknown-tool" });
      }
      if (mayPage && (paged ??= callSync("pages", [above]))) return pagesOf(path, above, args, sites);
      return callTool(path, quoted, args, sites);
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
        value: children[name] ??= node(path ? `${path}.${name}` : name, path),
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

const tools = node("");

function define(name, value) {
  defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/** Defines `tools`, `codemode` and the interface look-ups, and returns `tools`. */
export function installTools() {
  define("tools", tools);
  define("codemode", tools);
  define("__getToolInterface", (name) => callSync("interface", [name]));
  defineProperty(globalThis, "__interfaces", {
    __proto__: null,
    get: () => callSync("interfaces", []),
    enumerable: false,
    configurable: true,
  });
  return tools;
}

/** Defines each source as a global of its name, where that shadows nothing. */
export function installSources(sources) {
  for (let index = 0; index < sources.length; index++) {
    if (!(sources[index] in globalThis)) define(sources[index], tools[sources[index]]);
  }
}

/** Replaces `tools` for a rehearsal. Each records where it was called. */
export function rehearsalTools() {
  return node("");
}

/** Forgets the calls of a rehearsal. */
export function resetCalls() {
  nextId = 1;
}
