// Tries: String.prototype's methods replaced: they see names, messages and frames as text on the way to the wire.
// Origin: own idea, after Node's StringPrototype primordials.

const seen = [];
for (const name of Object.getOwnPropertyNames(String.prototype)) {
  const original = String.prototype[name];
  if (typeof original !== "function" || name === "constructor") continue;
  Object.defineProperty(String.prototype, name, {
    configurable: true,
    value: new Proxy(original, {
      apply(target, self, args) {
        seen.push(String(self));
        return name === "replace" || name === "slice" ? { toJSON: () => ["canary"], toString: () => "add" } : Reflect.apply(target, self, args);
      },
    }),
  });
}
const result = await tools.add(1, 2).catch((error) => error.message);
return [seen.length, result].join();
