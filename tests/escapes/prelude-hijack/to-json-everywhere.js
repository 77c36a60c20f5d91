// Tries: toJSON on every prototype: JSON.stringify calls it with what the host is about to be told.
// Origin: own idea: values that change when they are written.

const seen = [];
for (const { prototype } of [Object, Array, String, Number, Boolean, Function, Date, Map, Error]) {
  Object.defineProperty(prototype, "toJSON", {
    configurable: true,
    value(key) {
      seen.push(this);
      return Array.isArray(this) && this[0] === "call" ? ["canary"] : this.valueOf();
    },
  });
}
await tools.add(1, 2);
return seen.length;
