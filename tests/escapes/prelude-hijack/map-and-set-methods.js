// Tries: Map, Set and WeakMap methods replaced, to read the table of pending calls and to settle another call.
// Origin: own idea; the pending tables of JSON-RPC clients are Maps.

const seen = [];
for (const [owner, name] of [[Map, "set"], [Map, "get"], [Map, "delete"], [Map, "has"], [Set, "add"], [WeakMap, "get"], [WeakMap, "set"]]) {
  const original = owner.prototype[name];
  owner.prototype[name] = function (...args) {
    seen.push(...args);
    return Reflect.apply(original, this, args);
  };
}
await tools.add(1, 2);
return JSON.stringify(seen, (key, value) => value instanceof Map ? [...value] : value);
