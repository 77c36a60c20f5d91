/** What `@cloudflare/codemode` expects of an executor, as its own tests of its two executors state it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Executor } from "@cloudflare/codemode";
import { createCodeModeTool } from "../src/index.ts";
import { codemode, config, DEADLINE, executor, recorded } from "./support.ts";

const run: Executor = executor(); // the types fit

test("a program returns a value", DEADLINE, async () => {
  assert.deepEqual(await run.execute("async () => 42", codemode({})), { result: 42, logs: [] });
  assert.deepEqual(await run.execute("async () => 42", []), { result: 42, logs: [] });
  assert.equal((await run.execute("async () => {}", {})).error, undefined);
});

test("a program calls a function of the caller, which keeps its closure", DEADLINE, async () => {
  const secret = "api-key-123";
  const add = recorded(({ a, b }: { a: number; b: number }) => a + b);
  const getSecret = recorded(() => ({ key: secret }));
  const found = await run.execute(
    "async () => [await codemode.add({ a: 3, b: 4 }), await codemode.getSecret({})]",
    codemode({ add, getSecret }),
  );
  assert.deepEqual(found, { result: [7, { key: secret }], logs: [] });
  assert.deepEqual(add.calls, [[{ a: 3, b: 4 }]]);
});

test("functions may be given without a namespace", DEADLINE, async () => {
  const found = await run.execute("async () => await codemode.hello({})", { hello: recorded(() => "hi") });
  assert.deepEqual(found, { result: "hi", logs: [] });
});

test("bytes stay bytes in arguments and results", DEADLINE, async () => {
  const accept = recorded(({ bytes }: { bytes: Uint8Array }) => bytes);
  const found = await run.execute(
    `async () => {
      const bytes = await codemode.accept({ bytes: new Uint8Array([1, 2, 3]) });
      return { isBytes: bytes instanceof Uint8Array, values: Array.from(bytes), bytes };
    }`,
    codemode({ accept }),
  );
  assert.deepEqual(accept.calls, [[{ bytes: new Uint8Array([1, 2, 3]) }]]);
  assert.deepEqual(found, { result: { isBytes: true, values: [1, 2, 3], bytes: new Uint8Array([1, 2, 3]) }, logs: [] });
});

test("calls follow each other, and results flow into later calls", DEADLINE, async () => {
  const weather = recorded(() => ({ temp: 72 }));
  const search = recorded(({ query }: { query: string }) => ({ results: [`news about ${query}`] }));
  const found = await run.execute(
    `async () => {
      const weather = await codemode.weather({});
      const news = await codemode.search({ query: "temp " + weather.temp });
      return { weather, news };
    }`,
    codemode({ weather, search }),
  );
  assert.deepEqual(found.result, { weather: { temp: 72 }, news: { results: ["news about temp 72"] } });
  assert.deepEqual([weather.calls.length, search.calls.length], [1, 1]);
});

test("calls run at the same time", DEADLINE, async () => {
  let arrived = 0;
  let release = () => {};
  const together = new Promise<void>((resolve) => release = resolve);
  const wait = recorded(async ({ id }: { id: number }) => {
    if (++arrived === 3) release();
    await together;
    return { id };
  });
  const code = "async () => await Promise.all([1, 2, 3].map((id) => codemode.wait({ id })))";
  assert.deepEqual((await run.execute(code, codemode({ wait }))).result, [{ id: 1 }, { id: 2 }, { id: 3 }]);
});

test("executions run at the same time, and each gets its own answer", DEADLINE, async () => {
  const found = await Promise.all(
    [1, 2, 3].map((v) =>
      run.execute(
        `async () => await codemode.same({ v: ${v} })`,
        codemode({ same: recorded((args: unknown) => [args, v]) }),
      )
    ),
  );
  assert.deepEqual(found.map(({ result }) => result), [[{ v: 1 }, 1], [{ v: 2 }, 2], [{ v: 3 }, 3]]);
});

test("what a program throws is the error", DEADLINE, async () => {
  assert.equal((await run.execute('async () => { throw new Error("boom"); }', codemode({}))).error, "boom");
});

test("what a function throws is the error, and the program can catch it", DEADLINE, async () => {
  const fns = codemode({
    fail: recorded(() => {
      throw new Error("tool error");
    }),
  });
  assert.equal((await run.execute("async () => await codemode.fail({})", fns)).error, "tool error");
  const caught = await run.execute(
    'async () => { try { await codemode.fail(); } catch (e) { return "caught: " + e.message; } }',
    fns,
  );
  assert.equal(caught.result, "caught: tool error");
});

test("the console is captured, with its levels", DEADLINE, async () => {
  const found = await run.execute(
    'async () => { console.log("hello", "world"); console.warn("careful"); console.error("bad"); return "done"; }',
    codemode({}),
  );
  assert.deepEqual(found, { result: "done", logs: ["hello world", "[warn] careful", "[error] bad"] });
});

test("template literals, fences and bare expressions are programs", DEADLINE, async () => {
  assert.equal((await run.execute('async () => { return `hello ${"world"}`; }', codemode({}))).result, "hello world");
  assert.equal((await run.execute("```js\n1 + 1\n```", codemode({}))).result, 2);
  assert.equal((await run.execute("42", codemode({}))).result, 42);
});

test("a program reaches no network", DEADLINE, async () => {
  const found = await run.execute('async () => (await fetch("https://example.com")).status', codemode({}));
  assert.match(found.error ?? "", /denied|not allowed|no rule/i);
});

test("names of tools become identifiers", DEADLINE, async () => {
  const listIssues = recorded(() => [{ id: 1 }]);
  const found = await run.execute(
    "async () => await codemode.github_list_issues({})",
    codemode({ "github.list-issues": listIssues }),
  );
  assert.deepEqual(found, { result: [{ id: 1 }], logs: [] });
  assert.deepEqual(listIssues.calls, [[{}]]);
});

test("a timeout ends the program", DEADLINE, async () => {
  const code = "async () => { await new Promise((r) => setTimeout(r, 5000)); return 'done'; }";
  const found = await executor({ timeout: 100 }).execute(code, codemode({}));
  assert.deepEqual([found.result, found.error], [undefined, "Execution timed out"]);
});

test("each provider has its own namespace", DEADLINE, async () => {
  const add = recorded(({ a, b }: { a: number; b: number }) => a + b);
  const ping = recorded(({ msg }: { msg: unknown }) => ({ echoed: msg }));
  const found = await run.execute(
    `async () => {
      const sum = await codemode.add({ a: 3, b: 4 });
      return [await echo.ping({ msg: sum }), await store.get({}), await cache.get({})];
    }`,
    [
      { name: "codemode", fns: { add } },
      { name: "echo", fns: { ping } },
      { name: "store", fns: { get: recorded(() => "from store") } },
      { name: "cache", fns: { get: recorded(() => "from cache") } },
    ],
  );
  assert.deepEqual(found, { result: [{ echoed: 7 }, "from store", "from cache"], logs: [] });
});

test("arguments arrive by position", DEADLINE, async () => {
  const join = recorded((...parts: string[]) => parts.join("/"));
  const found = await run.execute('async () => await state_.join("a", "b", "c")', [{ name: "state_", fns: { join } }]);
  assert.deepEqual(found, { result: "a/b/c", logs: [] });
});

test("an error of a namespace's function is the error", DEADLINE, async () => {
  const fns = { doSomething: () => Promise.reject(new Error("provider failed")) };
  const found = await run.execute("async () => await broken.doSomething({})", [{ name: "broken", fns }]);
  assert.equal(found.error, "provider failed");
});

test("names that clash or are reserved are refused", DEADLINE, async () => {
  const refusal = async (providers: Parameters<Executor["execute"]>[1]) =>
    (await run.execute("async () => 1", providers)).error;
  assert.match(await refusal([{ name: "dup", fns: {} }, { name: "dup", fns: {} }]) ?? "", /Duplicate/);
  assert.match(await refusal([{ name: "__dispatchers", fns: {} }]) ?? "", /reserved/);
  assert.match(await refusal([{ name: "not an identifier", fns: {} }]) ?? "", /not a valid JavaScript identifier/);
  const both = { "foo-bar": recorded(() => 1), foo_bar: recorded(() => 2) };
  assert.match(await refusal(codemode(both)) ?? "", /both sanitize to "foo_bar"/);
});

test("a tool that is not there is named", DEADLINE, async () => {
  assert.match((await run.execute("async () => await codemode.nonexistent()", {})).error ?? "", /nonexistent/);
});

test("the tool for the AI SDK keeps the files of a session", DEADLINE, async () => {
  const { tool, filesystem, description, dispose } = createCodeModeTool({ tools: {}, config, session: "files" });
  try {
    assert.ok(filesystem);
    assert.match(description, /workspace/);
    assert.deepEqual(await filesystem.list(), []);
    await filesystem.writeFile("in/data", Uint8Array.of(0, 255));
    const code = `await files.write("out.txt", String((await files.readBytes("in/data")).length));
      return state.n = (state.n ?? 0) + 1;`;
    assert.deepEqual([(await tool.execute({ code })).result, (await tool.execute({ code })).result], [1, 2]);
    assert.equal(new TextDecoder().decode(await filesystem.readFile("out.txt")), "2");
    assert.deepEqual(await filesystem.list(), [{ path: "in/data", size: 2 }, { path: "out.txt", size: 1 }]);
    await filesystem.remove("in");
    await assert.rejects(filesystem.readFile("in/data"), /no file/);
    await assert.rejects(filesystem.writeFile("../out", ""), /can't be called/);
    await assert.rejects(filesystem.writeFile("big", new Uint8Array(3_000_001)), { code: "request-too-large" });
    await filesystem.writeFile("big", new Uint8Array(3_000_000));
  } finally {
    await dispose();
  }
  assert.throws(() => createCodeModeTool({ tools: {}, config, session: "other", filesystem: filesystem! }), /not both/);
  const plain = createCodeModeTool({ tools: {}, config });
  assert.equal(plain.filesystem, undefined);
  await plain.dispose();
});

test("two tools share files until the one that made them is disposed", DEADLINE, async () => {
  const one = createCodeModeTool({ tools: {}, config, filesystem: true });
  const two = createCodeModeTool({}, { config, filesystem: one.filesystem! });
  try {
    assert.match(two.description, /workspace/);
    assert.deepEqual((await one.tool.execute({ code: 'await files.write("note", "hi")' })).error, undefined);
    assert.equal((await two.tool.execute({ code: 'return await files.read("note")' })).result, "hi");
    await one.dispose();
    assert.deepEqual(await two.filesystem?.list(), []);
  } finally {
    await one.dispose();
    await two.dispose();
  }
});

test("the packages of a tool are those that its programs may import", DEADLINE, async () => {
  const { tool, dispose } = createCodeModeTool({ tools: {}, config, packages: [] });
  try {
    assert.match((await tool.execute({ code: 'import zip from "jszip"; zip' })).error ?? "", /jszip.*is refused/);
  } finally {
    await dispose();
  }
});
