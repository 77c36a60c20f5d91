// Tries: the typed arrays' set, subarray, slice, fill, copyWithin and their length and buffer accessors replaced.
// Origin: own idea, after Node's FastBuffer hardening.

const base = Object.getPrototypeOf(Uint8Array.prototype);
const seen = [];
for (const name of ["set", "subarray", "slice", "copyWithin", "fill", "reduce"]) {
  const original = base[name];
  base[name] = function (...args) {
    if (this instanceof Uint8Array) seen.push(this);
    if (args[0] instanceof Uint8Array) {
      seen.push(args[0]);
      if (args[0][0] === 0x5b) args[0] = new Uint8Array(args[0].length).fill(0x20);
    }
    return Reflect.apply(original, this, args);
  };
}
for (const name of ["length", "buffer", "byteOffset", "byteLength"]) {
  const { get } = Object.getOwnPropertyDescriptor(base, name);
  Object.defineProperty(base, name, { configurable: true, get() { seen.push(this); return Reflect.apply(get, this, []); } });
}
tools.add(1, 2);
return seen.map((bytes) => String.fromCharCode(...Array.from(bytes).slice(0, 2000))).join("|");
