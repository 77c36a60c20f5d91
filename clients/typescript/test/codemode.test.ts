/** The executor below the tools that `@cloudflare/codemode` itself makes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrowserCodeTool } from "@cloudflare/codemode/browser";
import { DEADLINE, executor } from "./support.ts";

const adding = {
  description: "Add two numbers",
  inputSchema: {
    type: "object" as const,
    properties: { a: { type: "number" as const }, b: { type: "number" as const } },
    required: ["a", "b"],
  },
  execute: ({ a, b }: Record<string, unknown>) => Promise.resolve({ sum: (a as number) + (b as number) }),
};

test("createBrowserCodeTool takes it as its executor", DEADLINE, async () => {
  const tool = createBrowserCodeTool({ tools: { addNumbers: adding }, executor: executor() });
  const found = await tool.execute({ code: "async () => await codemode.addNumbers({ a: 17, b: 25 })" });
  assert.deepEqual(found.result, { sum: 42 });
});

test("createBrowserCodeTool reports what a program throws", DEADLINE, async () => {
  const tool = createBrowserCodeTool({ tools: { addNumbers: adding }, executor: executor() });
  await assert.rejects(
    tool.execute({ code: 'async () => { throw new Error("fail"); }' }),
    /Code execution failed: fail/,
  );
});
