// The parts of Request, Response and Headers that `fetch` needs. QuickJS has none of them; they are not globals.

import { TextDecoder, TextEncoder } from "./encoding.js";
import {
  ArrayBuffer_,
  create,
  isArray,
  isView,
  iterator,
  keys,
  parseJson,
  promiseReject,
  promiseResolve,
  regexpExec,
  sliceBuffer,
  stringIndexOf,
  stringSlice,
  TypeError_,
  Uint8Array_,
  uncurry,
} from "./primordials.js";

const toLowerCase = uncurry(String.prototype.toLowerCase);
const toUpperCase = uncurry(String.prototype.toUpperCase);
const decodeText = uncurry(TextDecoder.prototype.decode);
const encodeText = uncurry(TextEncoder.prototype.encode);
const NORMALIZED = { __proto__: null, GET: true, HEAD: true, POST: true, PUT: true, DELETE: true, OPTIONS: true };
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

class Headers {
  #values = create(null);
  constructor(given) {
    for (const [name, value] of pairsOf(given)) this.append(name, value);
  }
  append(name, value) {
    const key = nameOf(name);
    this.#values[key] = key in this.#values ? `${this.#values[key]}, ${value}` : `${value}`;
  }
  set(name, value) {
    this.#values[nameOf(name)] = `${value}`;
  }
  get(name) {
    return this.#values[nameOf(name)] ?? null;
  }
  has(name) {
    return nameOf(name) in this.#values;
  }
  delete(name) {
    delete this.#values[nameOf(name)];
  }
  forEach(run, self) {
    for (const [name, value] of this) run.call(self, value, name, this);
  }
  *entries() {
    for (const name of keys(this.#values).sort()) yield [name, this.#values[name]];
  }
  *keys() {
    for (const [name] of this.entries()) yield name;
  }
  *values() {
    for (const [, value] of this.entries()) yield value;
  }
  [iterator]() {
    return this.entries();
  }
}

function nameOf(name) {
  const text = toLowerCase(`${name}`);
  if (regexpExec(HEADER, text) === null) throw new TypeError_(`${text} is not a header name`);
  return text;
}

function pairsOf(given) {
  if (given === undefined || given === null) return [];
  if (isArray(given) || given instanceof Headers) return given;
  const pairs = [];
  for (const name of keys(given)) pairs.push([name, given[name]]);
  return pairs;
}

class Response {
  #body;
  #used = false;
  constructor(reply, redirected) {
    this.#body = typeof reply.body === "string" ? encodeText(new TextEncoder(), reply.body) : reply.body; // text in a plan
    this.status = reply.status;
    this.statusText = reply.reason;
    this.ok = reply.status >= 200 && reply.status < 300;
    this.headers = new Headers(reply.headers);
    this.url = reply.url;
    this.redirected = redirected;
    this.type = "basic";
  }
  get bodyUsed() {
    return this.#used;
  }
  bytes() {
    if (this.#used) return promiseReject(new TypeError_("the body was read already"));
    this.#used = true;
    return promiseResolve(this.#body);
  }
  async arrayBuffer() {
    const bytes = await this.bytes();
    return sliceBuffer(bytes.buffer, bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
  async text() {
    return decodeText(new TextDecoder(), await this.bytes());
  }
  async json() {
    return parseJson(await this.text());
  }
}

function bodyOf(given) {
  if (given instanceof ArrayBuffer_) return new Uint8Array_(given);
  if (isView(given)) return new Uint8Array_(given.buffer, given.byteOffset, given.byteLength);
  return `${given}`;
}

/** Returns the parts of a request. */
export function readRequest(input, init = {}) {
  const headers = create(null);
  for (const [name, value] of new Headers(init.headers)) headers[name] = value;
  const stated = `${init.method ?? "GET"}`;
  const method = NORMALIZED[toUpperCase(stated)] ? toUpperCase(stated) : stated;
  const url = `${input}`;
  const end = stringIndexOf(url, "#");
  const request = { method, url: end < 0 ? url : stringSlice(url, 0, end), headers, body: undefined };
  request.redirect = init.redirect ?? "follow";
  if (init.body !== undefined && init.body !== null) {
    if (method === "GET" || method === "HEAD") throw new TypeError_(`a request with ${method} can't have a body`);
    request.body = bodyOf(init.body);
    if (typeof init.body === "string") headers["content-type"] ??= "text/plain;charset=UTF-8";
  }
  return request;
}

/** Returns the response for a reply of the host. */
export function responseFor(reply, _method, redirected) {
  return new Response(reply, redirected);
}
