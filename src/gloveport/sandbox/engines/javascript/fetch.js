// `fetch`: each request is a call of the host, which decides on it, makes it and records it. Redirects are followed here,
// with a call for each, so that no address is reached that was not decided on.

import { readRequest, responseFor } from "./http.js";
import {
  apply,
  create,
  hasOwn,
  keys,
  Promise_,
  promiseThen,
  stringIndexOf,
  stringSlice,
  TypeError_,
} from "./primordials.js";
import { callSite } from "./stacks.js";
import { callBuiltIn } from "./tools.js";

const READS = { __proto__: null, GET: true, HEAD: true, OPTIONS: true };
const REDIRECTS = { __proto__: null, 301: true, 302: true, 303: true, 307: true, 308: true };
const CREDENTIALS = { __proto__: null, authorization: true, cookie: true, "proxy-authorization": true };
const ABOUT_BODY = {
  __proto__: null,
  "content-type": true,
  "content-length": true,
  "content-encoding": true,
  "content-language": true,
  "content-location": true,
};
const MAX_REDIRECTS = 20;
const CLIENTS = ["client", "dispatcher", "agent"]; // of Deno, Node and node-fetch

function originOf(url) {
  const end = stringIndexOf(url, "/", 8);
  return end < 0 ? url : stringSlice(url, 0, end);
}

function without(headers, names) {
  const out = create(null);
  for (const name of keys(headers)) if (!names[name]) out[name] = headers[name];
  return out;
}

// Changes a request into the one for the address that a redirect names, as the Fetch standard says.
function redirect(request, status, location) {
  const sees = (status === 303 && request.method !== "HEAD") || (status < 303 && request.method === "POST");
  if (sees && request.method !== "GET") {
    request.method = "GET";
    request.body = undefined;
    request.headers = without(request.headers, ABOUT_BODY);
  }
  if (originOf(request.url) !== originOf(location)) request.headers = without(request.headers, CREDENTIALS);
  request.url = location;
}

function send(request) {
  const args = { method: request.method, url: request.url, headers: { ...request.headers } };
  if (request.body !== undefined) args.body = request.body;
  return callBuiltIn(READS[request.method] ? "egress.read" : "egress.write", args, request.site);
}

// The call itself goes on when a signal ends the wait for it: the host has already made it.
function waitFor(call, signal) {
  if (!signal) return call;
  return new Promise_((resolve, reject) => {
    apply(signal.addEventListener, signal, ["abort", () => reject(signal.reason)]);
    promiseThen(call, resolve, reject);
  });
}

async function answer(request) {
  for (let followed = 0;; followed++) {
    if (request.signal?.aborted) throw request.signal.reason;
    const reply = await waitFor(send(request), request.signal);
    request.url = reply.url;
    const location = REDIRECTS[reply.status] && hasOwn(reply, "location") ? reply.location : undefined;
    if (location === undefined || request.redirect === "manual") {
      return responseFor(reply, request.method, followed > 0);
    }
    if (request.redirect === "error") throw new TypeError_(`fetch failed: ${reply.url} redirects to ${location}`);
    if (followed === MAX_REDIRECTS) throw new TypeError_(`fetch failed: more than ${MAX_REDIRECTS} redirects`);
    redirect(request, reply.status, location);
  }
}

/** Makes a request through the host, and returns a promise of its Response. */
export function fetch(input, init) {
  const site = callSite(fetch);
  const start = (request) => {
    request.site = site;
    return answer(request);
  };
  return new Promise_((resolve) => {
    for (let i = 0; i < CLIENTS.length; i++) {
      if (init?.[CLIENTS[i]] !== undefined) {
        throw new TypeError_(`fetch: ${CLIENTS[i]} is refused: custom DNS, proxies and TLS checks belong to the host`);
      }
    }
    const request = readRequest(input, init); // throws for what is no request, which rejects the promise
    resolve(typeof request.then === "function" ? promiseThen(request, start) : start(request));
  });
}
