// Tries: the inspector: a session of node:inspector evaluates in the realm of the engine, and a port would let others
// in.
// Origin: vm2 CVE-2026-47140 (inspector/promises); Node CVE-2018-12120 (debug port).

const inspector = process.getBuiltinModule("inspector");
const session = new inspector.Session();
session.connect();
const found = await new Promise((resolve) => {
  session.post("Runtime.evaluate", { expression: `Deno.readTextFileSync(${JSON.stringify(input.file)}) + Deno.args` }, (error, result) =>
    resolve([String(error), JSON.stringify(result)]));
  setTimeout(resolve, 1000);
});
try {
  inspector.open(0, "127.0.0.1");
} catch { /* on */ }
return found;
