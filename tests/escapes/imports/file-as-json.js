// Tries: a file of the host with an import attribute that makes data of it.
// Origin: import attributes; own idea.

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
for (const type of ["json", "text", "bytes"]) {
  const module = await settle(() => import(`file://${type === "json" ? input.json : input.file}`, { with: { type } }));
  const value = module.default ?? String(module);
  found.push(value instanceof Uint8Array ? new TextDecoder().decode(value) : JSON.stringify(value));
}
return found;
