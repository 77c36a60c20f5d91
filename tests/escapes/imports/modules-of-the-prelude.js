// Tries: the prelude's own modules by the URL from which the engine loaded them: the module map gives the same
// instances, with the wire's functions.
// Origin: own idea: module maps are keyed by URL.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

const found = [];
for (const name of ["wire", "primordials", "main", "tools", "prelude", "values"]) {
  const module = await settle(() => import(`file:///guest/${name}.js`));
  found.push(Object.keys(module));
  if (typeof module.send === "function") {
    module.send('["canary"]');
    module.flush();
  }
  if (typeof module.writeSync === "function") module.writeSync(1, new Uint8Array([0, 0, 0, 2, 0x5b, 0x5d]));
}
const own = await settle(() => import(`file://${input.module}`));
return [found, own.default];
