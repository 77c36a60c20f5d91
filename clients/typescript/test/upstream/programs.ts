/** Programs that both executors run, ours and that of `@cloudflare/codemode`, with the tools that both get. */

import type { ResolvedProvider } from "../../src/index.ts";

/** How long a program may take. */
export const TIMEOUT_MS = 2000;

/** Returns the tools: each answers in the process of the caller. */
export const providers = (): ResolvedProvider[] => [
  {
    name: "codemode",
    fns: {
      add: (pair) => Promise.resolve(sum(pair as { a: number; b: number })),
      echo: (...args) => Promise.resolve(args),
      first: (value) => Promise.resolve(value),
      nothing: () => Promise.resolve(undefined),
      "list-issues": () => Promise.resolve([{ id: 1, title: "one" }]),
      fail: () => Promise.reject(new Error("tool error")),
      failTyped: () => Promise.reject(new RangeError("out of range")),
      failText: () => Promise.reject("just text"),
    },
  },
  { name: "store", fns: { get: (key) => Promise.resolve(`value of ${key}`) } },
];

const sum = ({ a, b }: { a: number; b: number }) => a + b;

/** Each has the name of the behaviour that it shows. */
export const PROGRAMS: Record<string, string> = {
  "a number": "async () => 42",
  "a text": "async () => 'text'",
  "null": "async () => null",
  "an object": "async () => ({ a: [1, { b: null }], c: true })",
  "a sync function": "() => 42",
  "a named function": "async function main() { return 42; }",
  "statements": "const a = 40;\nreturn a + 2;",
  "a last expression": "const a = 40;\na + 2",
  "a fence": "```js\nasync () => 42\n```",
  "a tool": "async () => await codemode.add({ a: 3, b: 4 })",
  "a tool with a sanitized name": "async () => await codemode.list_issues({})",
  "a namespace": "async () => await store.get('key')",
  "several arguments": "async () => await codemode.echo(1, 'two', [3], { four: 4 })",
  "no arguments": "async () => await codemode.echo()",
  "null as argument": "async () => await codemode.echo(null)",
  "a tool that returns nothing": "async () => typeof (await codemode.nothing({}))",
  "bytes":
    "async () => { const b = await codemode.first(new Uint8Array([1, 2])); return [b instanceof Uint8Array, [...b]]; }",
  "a date": "async () => (await codemode.first({ at: new Date(0) })).at instanceof Date",
  "in parallel": "async () => await Promise.all([1, 2, 3].map((n) => codemode.add({ a: n, b: n })))",
  "in sequence":
    "async () => { let n = 0; for (let i = 0; i < 5; i++) n = await codemode.add({ a: n, b: i }); return n; }",
  "a thrown error": "async () => { throw new Error('boom'); }",
  "a thrown TypeError": "async () => { throw new TypeError('wrong'); }",
  "a thrown text": "async () => { throw 'text'; }",
  "a rejected promise": "async () => await Promise.reject(new Error('rejected'))",
  "a TypeError of the engine": "async () => { const x = null; return x.y; }",
  "a ReferenceError": "async () => missing + 1",
  "a tool's error": "async () => await codemode.fail({})",
  "a tool's error, caught":
    "async () => { try { await codemode.fail({}); } catch (e) { return [e instanceof Error, e.message]; } }",
  "a tool's RangeError": "async () => await codemode.failTyped({})",
  "a tool's text": "async () => await codemode.failText({})",
  "errors that settle":
    "async () => (await Promise.allSettled([codemode.fail({}), codemode.add({ a: 1, b: 1 })])).map((r) => r.status)",
  "the console":
    "async () => { console.log('a', 1, true); console.info('b'); console.debug('c'); console.warn('d'); console.error('e'); return 1; }",
  "an object on the console": "async () => { console.log({ a: 1 }, [1, 2], null, undefined); return 1; }",
  "the console of a program that fails": "async () => { console.log('before'); throw new Error('boom'); }",
  "a syntax error": "async () => { return 1 +; }",
  "an unknown tool": "async () => await codemode.unknown({})",
  "an unknown tool, caught": "async () => { try { await codemode.unknown({}); } catch (e) { return 'caught'; } }",
  "a program that returns nothing": "async () => {}",
  "the network": "async () => (await fetch('https://example.com')).status",
  "a program that takes too long": "async () => { await new Promise((r) => setTimeout(r, 60_000)); }",
  "a program that waits for ever": "async () => await new Promise(() => {})",
  "TypeScript": "async () => { const n: number = 42; return n; }",
};
