// Tries: a heap snapshot or a structured dump of the engine's memory, in which other strings than ours may lie.
// Origin: node:v8 writeHeapSnapshot; secrets in heap dumps (OWASP).

const v8 = process.getBuiltinModule("v8");
const name = v8.writeHeapSnapshot(input.write);
const stream = v8.getHeapSnapshot?.();
return [name, typeof stream];
