// Tries: accessors for the indices 0 to 4 on Array.prototype and Object.prototype: a hole or an assignment in the
// prelude hits them.
// Origin: own idea: holes and assignments meet accessors on prototypes.

const seen = { __proto__: null, length: 0 };
for (const place of [Object.prototype, Array.prototype]) {
  for (let index = 0; index < 5; index++) {
    Object.defineProperty(place, index, {
      __proto__: null,
      configurable: true,
      get: () => undefined,
      set(value) {
        if (seen.length < 1000) Object.defineProperty(seen, seen.length++, { __proto__: null, value });
        Object.defineProperty(this, index, {
          __proto__: null,
          value: value instanceof Uint8Array ? new Uint8Array(9) : value,
          writable: true,
          enumerable: true,
          configurable: true,
        });
      },
    });
  }
}
const result = tools.add(1, 2).then(String, String);
for (const place of [Object.prototype, Array.prototype]) for (let index = 0; index < 5; index++) delete place[index];
return [await result, Array.from(seen).map((value) => value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value))];
