/**
 * Lets Node import `@cloudflare/codemode`, which names the module `cloudflare:workers` that only Workers have:
 * `node --import gloveport/workers app.js`. Its classes are empty; an executor needs nothing of them.
 */

import { register } from "node:module";

const CLASSES =
  "export class RpcTarget {} export class WorkerEntrypoint { constructor(ctx, env) { this.ctx = ctx; this.env = env; } }";
const HOOKS = `export async function resolve(specifier, context, next) {
  if (specifier !== "cloudflare:workers") return next(specifier, context);
  return { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(CLASSES)}`)}, shortCircuit: true };
}`;

register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
