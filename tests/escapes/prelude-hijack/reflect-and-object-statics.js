// Tries: the static functions of Reflect, Object, Array, Number and String replaced, and Proxy with its traps.
// Origin: own idea: a prelude that looks up Reflect.apply again is lost.

const seen = [];
for (const owner of [Reflect, Object, Array, Number, String]) {
  for (const name of Object.getOwnPropertyNames(owner)) {
    const original = owner[name];
    if (typeof original !== "function" || name === "prototype") continue;
    try {
      owner[name] = new Proxy(original, {
        apply(target, self, args) {
          seen.push(args);
          return name === "from" ? ["forged"] : target.call(self, ...args);
        },
      });
    } catch { /* fixed */ }
  }
}
const result = await tools.echo({ value: "mine" }).catch(String);
let text = "";
for (const args of seen) for (const arg of args) text += typeof arg === "string" ? arg : "";
if (result !== "mine") text += console.log('\0\0\0\x0a["canary"]');
return text;
