// Tries: the global Promise, Uint8Array, Error, Map and Array replaced by our own, for a prelude that still looks them
// up.
// Origin: own idea; the difference between capturing and looking up.

const seen = [];
for (const name of ["Promise", "Uint8Array", "Array", "Map", "Error", "Proxy", "String", "Number"]) {
  globalThis[name] = new Proxy(globalThis[name], {
    construct(target, args, newTarget) {
      const made = Reflect.construct(target, args, newTarget === globalThis[name] ? target : newTarget);
      seen.push([name, made, ...args]);
      return made;
    },
  });
}
await tools.add(1, 2);
let text = "";
for (const [name, made] of seen) {
  if (name === "Uint8Array") {
    text += new TextDecoder().decode(made);
    for (let at = 4; at < made.length; at++) made[at] = 0x20;
  }
}
tools.add(3, 4).catch(() => {});
return text.replaceAll("\0", "").slice(0, 100000);
