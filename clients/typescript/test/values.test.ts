/** The value codec. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode } from "../src/values.ts";

test("values that JSON lacks survive", () => {
  const values = [
    new Date(0),
    new Uint8Array([1, 2, 255]),
    12345678901234567890n,
    new Map<unknown, unknown>([["a", 1], [2, new Set(["b"])]]),
    [Number.NaN, Infinity, -Infinity, -0],
    { $: "not a tag", $$: 1, "a.b": null },
    undefined,
    Object.defineProperty({}, "__proto__", { value: 1, enumerable: true, writable: true, configurable: true }),
  ];
  for (const value of values) assert.deepEqual(decode(JSON.parse(JSON.stringify(encode(value)))), value);
});

test("an error keeps its name and message", () => {
  const error = decode(encode(new RangeError("too far"))) as Error;
  assert.deepEqual([error instanceof Error, error.name, error.message], [true, "RangeError", "too far"]);
});

test("what is no data is left out of objects, and a class with toJSON is what that returns", () => {
  assert.deepEqual(decode(encode({ f() {}, s: Symbol("s"), u: undefined, n: 1 })), { n: 1 });
  assert.deepEqual(decode(encode({ url: new URL("http://a.example/") })), { url: "http://a.example/" });
});

test("a value that contains itself is refused, one that occurs twice is not", () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  assert.throws(() => encode(loop), /contains itself/);
  const twice = { n: 1 };
  assert.deepEqual(decode(encode([twice, twice])), [twice, twice]);
});

test("a tag that nobody knows is refused", () => {
  assert.throws(() => decode({ $: "function", v: "x" }), /unknown tag/);
});
