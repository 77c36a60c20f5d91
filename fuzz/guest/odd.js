// Makes values that nobody would, and tries to send each: it crosses, or is refused with its path, and nothing else happens.

let state = input.seed;
const pick = (count) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 0x100000000 * count);
};
const own = () => {
  throw new RangeError("own");
};
const words = ["", "$", "$$", "v", "__proto__", "constructor", "toJSON", "then", "length", "a.b", "\ud800", "é", "\0"];
const numbers = [0, -0, NaN, Infinity, -Infinity, 1.5, 2 ** 53, -(2 ** 53) - 2, 1e300, 5e-324, 1e21, 0.1 + 0.2];
const Link = globalThis[["URL"][0]]; // not every engine has it
const plain = [
  () => null,
  () => undefined,
  () => pick(2) === 1,
  () => numbers[pick(numbers.length)],
  () => words[pick(words.length)],
  () => 10n ** BigInt(pick(60)),
  () => -(10n ** BigInt(pick(5000))),
  () => new Date(numbers[pick(numbers.length)]),
  () => new Uint8Array(pick(9)),
  () => new Float64Array([1.5, NaN]),
  () => new BigInt64Array(2),
  () => new DataView(new ArrayBuffer(8), pick(8)),
  () => new ArrayBuffer(pick(9)),
  () => Link && new Link("https://example.com/ä"),
  () => Symbol("s"),
  () => own,
  () => /re/g,
  () => new Number(5),
  () => Object(1n),
  () => new WeakMap(),
  () => Promise.resolve(1),
  () => [1, 2][Symbol.iterator](),
  () => (function* () {})(),
  () => new (class A {})(),
  () => globalThis.tools,
];
const nested = [
  (depth) => Array.from({ length: pick(5) }, () => make(depth - 1)),
  (depth) => [, make(depth - 1), ,],
  (depth) => Object.fromEntries([[words[pick(words.length)], make(depth - 1)], [words[pick(words.length)], 1]]),
  (depth) => new Map([[make(depth - 1), make(depth - 1)], [1, 1], [true, 2]]),
  (depth) => new Set([make(depth - 1), make(depth - 1)]),
  (depth) => new Error(words[pick(words.length)], { cause: make(depth - 1) }),
  (depth) => Object.assign(new TypeError("m"), { extra: make(depth - 1), name: make(depth - 1) }),
  (depth) => ({ toJSON: () => make(depth - 1) }),
  (depth) => new (class B {
    held = make(depth - 1);
    toJSON() {
      return pick(2) ? this : make(depth - 1);
    }
  })(),
  (depth) => Object.create({ inherited: 1 }, { a: { value: make(depth - 1), enumerable: true } }),
  (depth) => ({ then: make(depth - 1) }),
  (depth) => ({ get a() { return make(depth - 1); } }), // deno-fmt-ignore-line
  () => ({ get a() { return own(); } }), // deno-fmt-ignore-line
  (depth) => new Proxy({ a: make(depth - 1) }, {}),
  () => new Proxy([], { get: own }),
  () => new Proxy({}, { ownKeys: own, getPrototypeOf: own }),
  (depth) => {
    const around = [make(depth - 1)];
    around.push(around);
    return around;
  },
  () => {
    let deep = [];
    for (let level = 0; level < 50 + pick(200); level++) deep = pick(2) ? [deep] : { deep };
    return deep;
  },
  () => {
    const error = new Error("round");
    error.cause = error;
    return error;
  },
];
const make = (depth) => depth > 0 && pick(3) ? nested[pick(nested.length)](depth) : plain[pick(plain.length)]();

const refused = [];
for (let count = 0; count < input.count; count++) {
  try {
    await tools.take({ value: make(4) });
  } catch (error) {
    refused.push(String(error.message));
  }
}
return refused;
