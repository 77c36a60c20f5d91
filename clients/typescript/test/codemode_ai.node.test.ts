/** The executor below `createCodeTool` of `@cloudflare/codemode/ai`, which Node imports with `gloveport/workers`. */

import "../src/workers.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { DEADLINE, executor, recorded } from "./support.ts";

const { aiTools, createCodeTool } = await import("@cloudflare/codemode/ai");
const OPTIONS = { toolCallId: "1", messages: [], context: {} } as never;

const getWeather = {
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string() }),
  execute: (input: unknown) => Promise.resolve({ city: (input as { city: string }).city, celsius: -4 }),
};

test("createCodeTool takes it as its executor", DEADLINE, async () => {
  const tool = createCodeTool({ tools: { getWeather }, executor: executor() });
  const code = 'const w = await codemode.getWeather({ city: "Oslo" });\nconsole.log(w.city);\nw.celsius';
  assert.deepEqual(await tool.execute!({ code }, OPTIONS), { result: -4, logs: ["Oslo"] });
});

test("its providers have their namespaces, and check arguments", DEADLINE, async () => {
  const get = recorded(() => "value");
  const tool = createCodeTool({
    tools: [aiTools({ getWeather }), { name: "store", tools: { get: { execute: get } } }],
    executor: executor(),
  });
  const code =
    "async () => [await store.get({ key: 1 }), await codemode.getWeather({ city: 5 }).catch((e) => e.message)]";
  const { result } = await tool.execute!({ code }, OPTIONS) as { result: [string, string] };
  assert.equal(result[0], "value");
  assert.match(result[1], /expected string/);
});

test("a failed program makes it throw, with what the program logged", DEADLINE, async () => {
  const tool = createCodeTool({ tools: { getWeather }, executor: executor() });
  const code = 'async () => { console.log("before"); throw new Error("boom"); }';
  await assert.rejects(
    async () => await tool.execute!({ code }, OPTIONS),
    /Code execution failed: boom\n\nConsole output:\nbefore/,
  );
});
