// Tries: setTimeout and its kin with text instead of a function.
// Origin: implied eval (ESLint no-implied-eval); node:timers does not, browsers do.

const found = [];
globalThis.found = found;
const text = "found.push(Deno.args, Deno.readTextFileSync(input.file))";
for (const start of [setTimeout, setInterval, queueMicrotask, globalThis.setImmediate, process.nextTick]) {
  try {
    start(text, 1);
  } catch (error) {
    found.push(`${error}`);
  }
}
setTimeout(new Function(text), 1);
await new Promise((resolve) => setTimeout(resolve, 20));
return found;
