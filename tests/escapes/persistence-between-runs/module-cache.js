// Tries: the module map: a module with state, imported in both runs.
// Origin: S16; module caches of serverless platforms.

let module;
import("data:text/javascript,export const state = {}").then((loaded) => module = loaded, (error) => module = { error });
for (let turn = 0; turn < 100 && !module; turn++) {
  if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
  else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
}
if (input.round === 1 && module.state) module.state.planted = input.plant;
return input.round === 2 ? module.state?.planted : null;
