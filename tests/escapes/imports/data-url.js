// Tries: code from a data: URL, which is eval by another name.
// Origin: Deno's data: imports; CSP bypasses by data: modules.

const settle = async (load) => {
  let outcome;
  load().then((module) => outcome = { module }, (error) => outcome = { error });
  for (let turn = 0; turn < 300 && !outcome; turn++) {
    if (typeof Deno === "object") await new Promise((resolve) => setTimeout(resolve, 5));
    else await crypto.subtle.digest("SHA-256", new Uint8Array(100000));
  }
  return outcome?.module ?? outcome?.error ?? "nothing";
};

const source = `export default [globalThis.Deno?.args, globalThis.Deno?.readTextFileSync(${JSON.stringify(input.file)})]`;
const module = await settle(() => import(`data:text/javascript,${encodeURIComponent(source)}`));
return module.default ?? String(module);
