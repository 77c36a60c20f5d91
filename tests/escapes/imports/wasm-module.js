// Tries: a WebAssembly file imported as a module, with its imports resolved by the engine.
// Origin: WebAssembly/ESM integration; own idea.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

// (module (import "./canary.js" "default" (global externref)) (export "d" (global 0)))
const path = `${input.directory}/written.wasm`;
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 2, 26, 1, 11, ...new TextEncoder().encode("./canary.js"), 7,
  ...new TextEncoder().encode("default"), 3, 111, 0, 7, 5, 1, 1, 100, 3, 0]);
try {
  Deno.writeFileSync(path, bytes);
} catch { /* then it is not there */ }
const module = await settle(() => import(`file://${path}`));
return [String(module.d), String(module)];
