// Tries: import options with accessors and proxies, evaluated between the check of a specifier and its use.
// Origin: time of check, time of use; specifier objects in vm2's import hooks.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

let turn = 0;
const specifier = { toString: () => turn++ === 0 ? `file://${input.module}` : "node:fs" };
const options = { get with() { return new Proxy({}, { ownKeys: () => [], get: () => undefined }); } };
const module = await settle(() => import(specifier, options));
return module.default ?? String(module);
