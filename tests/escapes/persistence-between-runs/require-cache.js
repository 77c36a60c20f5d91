// Tries: a module that one run puts into the cache of `require`, required by the next.
// Origin: S16; Module._cache is one for a process.

const { createRequire, Module } = await import("node:module");
const require = createRequire("file:///planted.js");
const name = "/planted/module.js";
if (input.round === 1) {
  Module._cache[name] = { exports: input.plant, loaded: true, id: name, filename: name, children: [], paths: [] };
  return null;
}
return [Module._cache[name]?.exports, Object.keys(require.cache ?? {})];
