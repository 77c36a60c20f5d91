// Tries: an import call that one parser takes for a type and the engine runs: a line break after `as any` ends the
// type.
// Origin: S22: two parsers, two readings; own idea.

const caught: Promise<any>[] = [];
Object.defineProperty(Promise.prototype, "caught", { configurable: true, get() { caught.push(this); return 0; } });
let a = 1 as any
[import("file:///guest/wire.js").caught]
let b = 1 satisfies any
[import("data:text/javascript,export default [globalThis.Deno?.args, globalThis.Deno?.env.get('GLOVEPORT_ESCAPE_CANARY')]").caught]
const modules: any[] = [];
for (const promise of caught) promise.then((module) => modules.push(module), (error) => modules.push(String(error)));
for (let turn = 0; turn < 100 && modules.length < caught.length; turn++) {
  if ((globalThis as any).Deno) await new Promise((resolve) => setTimeout(resolve, 5));
  else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
}
for (const module of modules) {
  if (typeof module.send !== "function") continue;
  module.send('["canary"]');
  module.flush();
}
return modules.map((module) => JSON.stringify(module.default ?? Object.keys(module)));
