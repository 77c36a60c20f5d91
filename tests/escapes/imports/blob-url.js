// Tries: code from a blob: URL that the program makes itself, with every type the engine knows.
// Origin: own idea: the way in which the prelude itself loads programs.

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
const source = `export default [globalThis.Deno?.args, globalThis.Deno?.readTextFileSync(${JSON.stringify(input.file)})]`;
for (const type of ["text/javascript", "application/typescript", "application/wasm"]) {
  try {
    const url = URL.createObjectURL(new Blob([source], { type }));
    const module = await settle(() => import(url));
    found.push(module.default ?? String(module));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
