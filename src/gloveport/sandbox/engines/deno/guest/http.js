// Deno's own Request and Response around a call of `fetch`.

import { platform } from "./platform.js";
import { create, defineProperty, promiseThen, typedArrayLength, Uint8Array_, uncurry } from "./primordials.js";

// Deno loads these classes when they are first read, which takes 15 ms: only a program that uses `fetch` pays for them.
let classes = null;

function platformClasses() {
  if (classes === null) {
    const { Headers, Request, Response, TextDecoder } = globalThis;
    const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const decodeText = uncurry(TextDecoder.prototype.decode);
    classes = {
      __proto__: null,
      Request,
      Response,
      arrayBuffer: uncurry(Request.prototype.arrayBuffer),
      eachHeader: uncurry(Headers.prototype.forEach),
      decode: (bytes) => decodeText(strict, bytes),
    };
  }
  return classes;
}

const NO_BODY = { __proto__: null, 101: true, 103: true, 204: true, 205: true, 304: true };

// A person who is asked reads a text more easily than base64.
function textOrBytes(bytes) {
  try {
    return platformClasses().decode(bytes);
  } catch {
    return bytes;
  }
}

/** Returns the parts of a request, or a promise of them where it has a body. */
export function readRequest(input, init) {
  const { Request, arrayBuffer, eachHeader } = platformClasses();
  const given = new Request(input, init);
  const headers = create(null);
  eachHeader(given.headers, (value, name) => headers[name] = value);
  const request = { method: given.method, url: withoutFragment(given.url), headers, body: undefined };
  request.redirect = given.redirect;
  request.signal = init?.signal ?? (typeof input === "object" && input !== null ? input.signal : undefined);
  if (given.body === null) return request;
  return promiseThen(platform(() => arrayBuffer(given)), (buffer) => {
    request.body = textOrBytes(new Uint8Array_(buffer));
    return request;
  });
}

function withoutFragment(url) {
  const at = url.indexOf("#");
  return at < 0 ? url : url.slice(0, at);
}

/** Returns the Response for a reply of the host. */
export function responseFor(reply, method, redirected) {
  const empty = typeof reply.body !== "string" && typedArrayLength(reply.body) === 0; // it is a text in a plan
  const body = NO_BODY[reply.status] || method === "HEAD" || empty ? null : reply.body;
  const { Response } = platformClasses();
  const response = new Response(body, { status: reply.status, statusText: reply.reason, headers: reply.headers });
  defineProperty(response, "url", { __proto__: null, value: reply.url, enumerable: true });
  defineProperty(response, "redirected", { __proto__: null, value: redirected, enumerable: true });
  return response;
}
